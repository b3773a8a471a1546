"""A folder of sentence pairs that a command makes: a part at a time, with the origin of each pair.

While the command works, the folder holds `parts/` and `job.json`. Each part is complete or absent,
and `job.json` counts what is done, so that the command continues after any interruption. At the end
the parts become

    text.en text.de   the pairs, line n of one being the translation of line n of the other
    origin.tsv        for each pair: the file and the line that it comes from, and its score
    pairs.json        how the pairs were made: models, settings, input files, counts; written last
"""

import hashlib
import json
import math
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

from nmt.errors import ConfigError, DataError
from nmt.files import (
    FORMAT_KEY,
    check_format,
    explain_os_errors,
    final_name,
    lock_file,
    read_json,
    write_atomically,
    write_json,
)
from nmt.recipe.config import MixedText, SyntheticText, TextPair

FORMAT = 1
"""The version of the folder's format: its files and the keys of pairs.json."""

_MANIFEST, _JOB, _PARTS, _ORIGIN = "pairs.json", "job.json", "parts", "origin.tsv"
PART_PAIRS = 10_000
"""The most pairs of a part."""
PART_SECONDS = 10.0
"""A part ends earlier after this time, so that an interruption loses at most so much work."""

_REMEDY = "choose another folder, or remove this one"
_KEPT = "pairs"  # the key of the number of pairs in pairs.json


class MadePair(NamedTuple):
    """A sentence pair and where it comes from."""

    source: str
    target: str
    file: int
    """the number of the input file, from 0"""
    line: int
    """the line in it, from 1"""
    score: float | None = None
    """the lower, the better; None if pairs are not compared"""


class PairFolder:
    """Writes the folder; use it in a `with` statement, which keeps other processes out.

    `facts` say how the pairs are made, and from which files (the key `inputs`); a folder is
    continued only with the same facts. An input is one line, or one pair, of these files.
    """

    def __init__(self, folder: Path, languages: tuple[str, str], facts: Mapping[str, Any]) -> None:
        """Open or create the folder.

        Raises:
            ConfigError: the folder holds pairs that were made otherwise, or other files.
            DataError: another process writes it.
        """
        self.folder, self.languages = folder, languages
        self._facts = json.loads(json.dumps(dict(facts)))  # tuples become lists, as in the files
        self._waiting: list[MadePair] = []  # pairs that are not in a part yet
        self._waiting_inputs = 0
        self._last_part_time = time.monotonic()
        self._lock = self._open()
        try:
            self._remove_leftovers()
            self._job = self._read_job()
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> "PairFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    @property
    def is_complete(self) -> bool:
        """Whether all pairs are made and `finish` has written the texts."""
        return (self.folder / _MANIFEST).is_file()

    @property
    def names(self) -> list[str]:
        """The names of the files of a complete folder; the last one says that it is complete."""
        return [*map(_text_name, self.languages), _ORIGIN, _MANIFEST]

    @property
    def files(self) -> list[str]:
        """The paths of the input files, whose numbers `MadePair.file` has."""
        return [each["file"] for each in self._facts["inputs"]]

    @property
    def inputs(self) -> int:
        """The number of inputs whose pairs are in complete parts; the command skips so many."""
        return sum(part["inputs"] for part in self._job["parts"])

    def add(self, pairs: Sequence[MadePair], inputs: int) -> None:
        """Add the pairs that were made of the next inputs; write a part if it is time.

        `inputs` is the number of these inputs, from which no pair or several may come.
        """
        self._waiting += pairs
        self._waiting_inputs += inputs
        is_full = len(self._waiting) >= PART_PAIRS
        if is_full or time.monotonic() - self._last_part_time > PART_SECONDS:
            self._write_part()

    def finish(self, keep: float = 1.0, more_facts: Mapping[str, Any] | None = None) -> int:
        """Write the texts from the parts, then remove these; return the number of pairs.

        Only the share `keep` of the pairs is kept, those with the lowest scores. `more_facts`, such
        as counts, stand in pairs.json beside the facts of the constructor.
        """
        write_json(self.folder / _JOB, self._job)  # none yet if there are no parts
        pairs = self.pairs()
        if keep < 1:
            limit = worst_score([_score(pair) for pair in self.pairs()], keep)
            pairs = (pair for pair in pairs if _score(pair) <= limit)
        kept, digests = self._write_texts(pairs)
        facts = {_KEPT: kept, **self._facts, **(more_facts or {})}
        write_json(self.folder / _MANIFEST, {FORMAT_KEY: FORMAT, **facts, "sha256": digests})
        self._remove_parts()
        return kept

    def begin(self) -> Path:
        """Record the facts before there is a pair, and return the path of a file for notes.

        A command writes there what it has not added yet; `finish` removes the file.
        """
        write_json(self.folder / _JOB, self._job)
        return self.folder / _PARTS / "notes.jsonl"

    def _open(self) -> IO[bytes]:
        """Create the folder if it is missing, and return its lock file, locked."""
        with explain_os_errors(self.folder, "written"):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = open(self.folder / ".lock", "ab")  # noqa: SIM115 - open until `__exit__`
        try:
            lock_file(lock, self.folder / ".lock")
        except DataError:
            lock.close()
            raise
        return lock

    def _remove_leftovers(self) -> None:
        """Remove the files that a process was writing when it was killed."""
        for temporary in self.folder.glob(".*.tmp"):
            if final_name(temporary) in (_JOB, *self.names):
                temporary.unlink()

    def _read_job(self) -> dict[str, Any]:
        """Return the content of job.json: the facts, and the `parts` that are complete."""
        path = self.folder / _JOB
        if self.is_complete:
            self._check_facts(read_manifest(self.folder))
            self._remove_parts()  # of a process that was killed after its last file
            return {"parts": []}
        if not path.exists():
            foreign = {entry.name for entry in self.folder.iterdir()} - {".lock", _PARTS}
            if foreign:
                raise ConfigError(
                    f"{self.folder} holds other files ({', '.join(sorted(foreign)[:3])}); give a "
                    "new or empty folder"
                )
            (self.folder / _PARTS).mkdir(exist_ok=True)
            return {**self._facts, "parts": []}
        try:
            job = read_json(path)
            parts = job["parts"]
        except (OSError, ValueError, KeyError) as error:
            raise DataError(f"{path}: damaged ({error}); {_REMEDY}") from error
        self._check_facts(job)
        return {**self._facts, "parts": parts}

    def _check_facts(self, recorded: Mapping[str, Any]) -> None:
        """Check that the folder was begun with the facts of today; an older one may lack some."""
        before, now = _flatten(recorded), _flatten(self._facts)
        for name, value in now.items():
            if before.get(name, "null") != value:
                raise ConfigError(
                    f"{self.folder} was begun with {name} {before.get(name)}, and now it is "
                    f"{value}; {_REMEDY}"
                )

    def _part_path(self, number: int) -> Path:
        return self.folder / _PARTS / f"part-{number:05d}.jsonl"

    def _write_part(self) -> None:
        """Write the waiting pairs as a part of JSON lines, and then record it in job.json."""
        lines = (json.dumps(pair, ensure_ascii=False) for pair in self._waiting)
        content = "".join(f"{line}\n" for line in lines).encode("utf-8")
        parts = self._job["parts"]
        write_atomically(self._part_path(len(parts)), content)
        digest = hashlib.sha256(content).hexdigest()
        parts.append({"inputs": self._waiting_inputs, "sha256": digest})
        write_json(self.folder / _JOB, self._job)
        self._waiting, self._waiting_inputs = [], 0
        self._last_part_time = time.monotonic()

    def pairs(self) -> Iterator[MadePair]:
        """Yield the pairs that were added until now, in order; call it before `finish`.

        Raises:
            DataError: a part is missing or was changed.
        """
        if self._waiting_inputs:  # so that the parts hold all pairs
            self._write_part()
        for number, part in enumerate(self._job["parts"]):
            path = self._part_path(number)
            content = path.read_bytes() if path.is_file() else b""
            if hashlib.sha256(content).hexdigest() != part["sha256"]:
                raise DataError(f"{path}: missing or changed since it was written; {_REMEDY}")
            for line in content.decode("utf-8").removesuffix("\n").split("\n"):
                if line:
                    yield MadePair(*json.loads(line))

    def _write_texts(self, pairs: Iterator[MadePair]) -> tuple[int, dict[str, str]]:
        """Write text and origin of the pairs; return their number and the files' SHA-256."""
        names = self.names[:-1]
        files, count = self.files, 0
        with ExitStack() as stack:
            temporaries = [self.folder / f".{name}.tmp" for name in names]
            outputs = [stack.enter_context(open(path, "wb")) for path in temporaries]
            hashes = [hashlib.sha256() for _ in names]
            for pair in pairs:
                count += 1
                score = "" if pair.score is None else f"\t{pair.score:.4f}"
                origin = f"{files[pair.file]}\t{pair.line}{score}"
                lines = (pair.source, pair.target, origin)
                for output, digest, line in zip(outputs, hashes, lines, strict=True):
                    encoded = f"{line}\n".encode()
                    output.write(encoded)
                    digest.update(encoded)
        for path, name in zip(temporaries, names, strict=True):
            path.replace(self.folder / name)
        return count, {name: digest.hexdigest() for name, digest in zip(names, hashes, strict=True)}

    def _remove_parts(self) -> None:
        shutil.rmtree(self.folder / _PARTS, ignore_errors=True)
        (self.folder / _JOB).unlink(missing_ok=True)


def _score(pair: MadePair) -> float:
    """Return the score of a pair; pairs that are not compared have equal ones."""
    return 0.0 if pair.score is None else pair.score


def worst_score(scores: Sequence[float], keep: float) -> float:
    """Return the highest score among the share `keep` of lowest ones; infinity if all are kept."""
    if keep >= 1 or not scores:
        return math.inf
    kept_count = max(1, round(keep * len(scores)))
    return sorted(scores)[kept_count - 1]


def _flatten(facts: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested facts with dotted names and JSON values: {"search.beam_size": "4"}."""
    flat: dict[str, str] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = json.dumps(value, ensure_ascii=False)
    return flat


def _text_name(language: str) -> str:
    """Return the name of the file of one language in the folder."""
    return f"text.{language}"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return pairs.json of a complete folder.

    Raises:
        DataError: the folder is missing, incomplete or damaged.
    """
    path = folder / _MANIFEST
    try:
        manifest = read_json(path)
    except FileNotFoundError as error:
        is_begun = (folder / _JOB).is_file() or (folder / _PARTS).is_dir()
        problem = "is not complete: run its command again" if is_begun else "holds no pairs"
        raise DataError(
            f"{folder} {problem}; expected a folder that `nmt synthesize` or `nmt data clean` wrote"
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    check_format(manifest, FORMAT, folder, "make the pairs again")
    return manifest


def folder_text(folder: Path, languages: tuple[str, str], tags: Sequence[str] = ()) -> TextPair:
    """Return the files of the pairs in a complete folder, in the direction of `languages`.

    A side may instead be in a language that one of `tags` names: one model can learn several.

    Raises:
        DataError: the folder is incomplete, or holds no text in these languages.
    """
    manifest = read_manifest(folder)
    in_folder = manifest.get("languages") or ["?"]  # "?" for the error: the manifest names none
    sides = zip(in_folder, languages, strict=False)  # the number is checked below
    fits = all(language in (expected, *tags) for language, expected in sides)
    if len(in_folder) != 2 or not fits:
        raise DataError(
            f"{folder}: holds pairs of {'-'.join(in_folder)}, expected {'-'.join(languages)}, the "
            "languages of the recipe (data.source_language, data.target_language); or name the "
            "other language in `tags`, if the recipe has several"
        )
    source, target = (str(folder / _text_name(language)) for language in in_folder)
    own_languages = None if tuple(in_folder) == languages else in_folder
    return TextPair(source=source, target=target, languages=own_languages)


def synthetic_text(text: SyntheticText, languages: tuple[str, str]) -> TextPair:
    """Return the files of an entry of data.synthetic, with its tags and steps.

    Raises:
        DataError: its folder is incomplete, or holds no text in these languages.
    """
    files = folder_text(Path(text.folder), languages, text.tags)
    tags_and_steps = text.model_dump(include=set(MixedText.model_fields))
    return files.model_copy(update=tags_and_steps)
