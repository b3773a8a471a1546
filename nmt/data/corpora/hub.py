"""Translation data sets of the Hugging Face Hub as line-aligned text.

The only file that uses the library `datasets`. No code of a data set is ever run: one that
consists of a loading script is refused. A revision is a commit, so that equal names give equal
text; without one, the revision of the first download is used from then on.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tqdm import tqdm

from nmt.data.corpora.download import fetch_json
from nmt.data.corpora.folders import Log
from nmt.data.corpora.listing import Listing, Pair
from nmt.data.corpora.origin import Origin
from nmt.data.corpora.splits import SPLITS, Languages, complete_splits, write_split
from nmt.data.text.parallel_text import TRANSLATION
from nmt.errors import DataError, NmtError

ENDPOINT: str | None = None
"""the URL of the Hub; None: the default of its library"""

_ROWS = 1000  # read at once
_LISTED = 100  # data sets, those with the most downloads
_LINE_ENDS = re.compile(r"[\r\n]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")

# the names that data sets give to our splits
_UPSTREAM = {
    "train": ("train",),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test",),
}
# data sets that are loading scripts, and corpora with the same text
_SCRIPTS = {
    "iwslt/iwslt2017": "the corpus iwslt2017",
    "helsinki-nlp/tatoeba_mt": "the corpus tatoeba_en_fr or opus:Tatoeba",
    "helsinki-nlp/europarl": "opus:Europarl",
    "helsinki-nlp/open_subtitles": "opus:OpenSubtitles",
}

Field = tuple[str, str | None]
"""a column of a batch, and the key inside its records; None: the column holds the text itself"""
Batch = Mapping[str, Sequence[Any]]  # the values of each column, by its name


@dataclass(frozen=True)
class HubData:
    """A data set of the Hub."""

    repository: str
    """OWNER/NAME"""
    configuration: str | None
    """None: it has only one"""
    revision: str | None
    """a commit, or a branch or tag that is looked up; None: the newest at the first download"""
    splits: Sequence[str] = ("train",)
    """our splits that it must have; any other missing one is split off the training text"""

    def __str__(self) -> str:
        return f"{self.repository} {self.configuration or ''}".rstrip()


def write_hub_text(folder: Path, languages: Languages, origin: Origin, data: HubData) -> None:
    """Write {train,validation,test}.{language} in `folder`.

    Reads the Hub, or, in `origin.folder` if it is given, CONFIGURATION/SPLIT-*.parquet or
    CONFIGURATION/SPLIT/*.parquet. A missing validation or test set is split off the training text.

    Raises:
        DataError: the data set cannot be read, needs a loading script, or its rows are not
            translations of the languages.
    """
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        rows = _load(data, origin)
        for split in SPLITS:
            name = next((name for name in _UPSTREAM[split] if name in rows), None)
            if name is not None:
                pairs = _pairs(rows[name], split, languages, data, origin.log)
                write_split(folder, split, languages, pairs)
            elif split in data.splits:
                raise DataError(
                    f"{data}: has no split '{split}', only {', '.join(rows) or 'none'}; choose "
                    "another configuration or data set"
                )
    except NmtError:
        raise
    except Exception as error:  # the library and what it builds upon raise dozens of kinds
        raise _explain(data, error) from error
    complete_splits(folder, languages, origin.log)


def find_hub_data(pair: Pair, timeout_s: float) -> Iterator[Listing]:
    """Yield the translation data sets that name both languages and can be loaded by everybody.

    A configuration that is named by the two, such as "de-en", is a part of the name.

    Raises:
        DataError: the Hub does not answer; a KeyError or the like: it answers something else.
    """
    from huggingface_hub import constants

    tags = ["task_categories:translation", "library:datasets"]
    tags += [f"language:{language.base}" for language in pair]
    query = [*(("filter", tag) for tag in tags), ("gated", "false"), ("sort", "downloads")]
    query += [("limit", str(_LISTED)), ("expand", "tags"), ("expand", "cardData")]
    address = f"{ENDPOINT or constants.ENDPOINT}/api/datasets?{urlencode(query)}"
    for entry in fetch_json(address, timeout_s):
        facts = dict(tag.split(":", 1) for tag in reversed(entry["tags"]) if ":" in tag)
        name, sets = _configuration(entry.get("cardData") or {}, pair)
        found = {ours: sets[n] for ours, names in _UPSTREAM.items() for n in names if n in sets}
        yield Listing(
            f"hf:{entry['id']}:{name}" if name else f"hf:{entry['id']}",
            "Hub",
            found.get("train", found.get("test")),
            facts.get("size_categories", ""),
            facts.get("license", ""),
            ", ".join(found).replace("train", "training"),
        )


def _configuration(card: Mapping[str, Any], pair: Pair) -> tuple[str, dict[str, int]]:
    """Return the configuration named by the languages and the pairs in its splits, else nothing."""
    infos = card.get("dataset_info") or []
    for info in [infos] if isinstance(infos, dict) else infos:
        name = info.get("config_name") or ""
        if {language.base for language in pair} <= {*re.split(r"[^a-z]+", name.lower())}:
            splits = info.get("splits") or []
            return name, {split["name"]: split["num_examples"] for split in splits}
    return "", {}


def _load(data: HubData, origin: Origin) -> Any:
    """Return a mapping from the data set's split names to their rows (`datasets.Dataset`)."""
    import datasets

    if origin.folder is not None:
        files = _parquet_files(origin.folder, data)
        cache = str(origin.downloads)
        return datasets.load_dataset("parquet", data_files=files, streaming=True, cache_dir=cache)
    if Path(data.repository).is_dir():
        raise DataError(
            f"{data.repository} is also a folder here, which would be read instead of the data set "
            "of the Hub; work in another directory"
        )
    revision = _find_commit(data, origin)
    origin.log(f"loading {data} from the Hugging Face Hub, revision {revision}")
    return datasets.load_dataset(data.repository, data.configuration, revision=revision)


def _find_commit(data: HubData, origin: Origin) -> str:
    """Return the given commit, else that of the first download, else the newest; record it."""
    if data.revision and _COMMIT.fullmatch(data.revision):
        return data.revision
    address = f"{data.repository}@{data.revision or ''}"
    known = origin.recall(address).get("revision")
    if known is not None:
        return str(known)
    from huggingface_hub import HfApi

    found = HfApi(endpoint=ENDPOINT).dataset_info(data.repository, revision=data.revision).sha
    if found is None:
        raise DataError(f"{data}: the Hub names no revision of it; name one after an @")
    origin.remember(address, {"revision": found})
    return found


def _parquet_files(root: Path, data: HubData) -> dict[str, list[str]]:
    """Return the paths of the parquet files of each of our splits that `root` has."""
    configuration = data.configuration or "default"
    folder = root / configuration if (root / configuration).is_dir() else root
    files: dict[str, list[str]] = {}
    for split, names in _UPSTREAM.items():
        patterns = [f"{name}{rest}" for name in names for rest in ("-*.parquet", "/*.parquet")]
        found = next((sorted(folder.glob(p)) for p in patterns if any(folder.glob(p))), [])
        if found:
            files[split] = list(map(str, found))
        elif split in data.splits:
            raise DataError(f"{folder}: no file called {split}-*.parquet is here")
    return files


def _pairs(
    rows: Any, split: str, languages: Languages, data: HubData, log: Log
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a split; line ends inside a sentence become spaces."""
    pair_count = changed = 0
    fields: list[Field] = []
    for batch in tqdm(rows.iter(_ROWS), desc=split, unit_scale=_ROWS, disable=None):
        if not fields:
            fields = _fields(batch, languages, data)
            names = [name for name, _ in fields]
            if split == "train" and {*names}.isdisjoint({TRANSLATION, *languages}):
                columns = " and ".join(f"'{name}'" for name in names)
                log(f"columns {columns} are taken for {languages[0]} and {languages[1]}")
        for pair in zip(*(_sentences(batch, field, data) for field in fields), strict=True):
            source, target = (_LINE_ENDS.sub(" ", sentence) for sentence in pair)
            changed += (source != pair[0]) + (target != pair[1])
            pair_count += 1
            yield source, target
    log(f"{split}: {pair_count:,} pairs; line ends inside {changed:,} sentences became spaces")


def _fields(batch: Batch, languages: Languages, data: HubData) -> list[Field]:
    """Return the field of the source and that of the target, judged by the first row."""
    first = batch.get(TRANSLATION, [None])[0]
    if isinstance(first, Mapping):
        if all(language in first for language in languages):
            return [(TRANSLATION, language) for language in languages]
        found = [f"{TRANSLATION}.{key}" for key in first]
    else:
        found = [name for name, column in batch.items() if isinstance(column[0], str)]
        if all(language in found for language in languages):
            return [(language, None) for language in languages]
        if len(found) == 2:
            # two columns of text: the configuration, such as "de-en", may say their order
            words = re.findall(r"[A-Za-z]+", data.configuration or "")
            order = [word for word in words if word in languages]
            columns = dict(zip(order if len(order) == 2 else languages, found, strict=True))
            return [(columns[language], None) for language in languages]
    source, target = languages
    raise DataError(
        f"{data}: no text of {source} and {target}, found {', '.join(found) or 'no text at all'}; "
        f"expected {TRANSLATION}.{source} and {TRANSLATION}.{target}, columns called {source} and "
        f"{target}, or two columns of text; choose other languages or another configuration"
    )


def _sentences(batch: Batch, field: Field, data: HubData) -> list[str]:
    """Return the texts of a field in the rows of a batch; null is an empty text."""
    column, key = field
    texts = [value if key is None else value[key] for value in batch[column]]
    for text in texts:
        if text is not None and not isinstance(text, str):
            raise DataError(
                f"{data}: expected a text in each row under '{key or column}', got a "
                f"{type(text).__name__}; choose another configuration or data set"
            )
    return [text or "" for text in texts]


def _explain(data: HubData, error: Exception) -> DataError:
    """Return an error with the message of the library, and what the user can do about it."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if "scripts are no longer supported" in reason:
        elsewhere = _SCRIPTS.get(data.repository.lower())
        return DataError(
            f"{data} needs a loading script, which is never run; use "
            + (f"{elsewhere} instead, or " if elsewhere else "")
            + "a data set that holds its text in files (hf:OWNER/NAME:CONFIGURATION), a corpus of "
            "OPUS (opus:CORPUS), or fetch its parquet files, if the Hub has them on the branch "
            "refs/convert/parquet, and use --from"
        )
    if "BuilderConfig" in reason or "Config name is missing" in reason:
        step = f"name one of them: hf:{data.repository}:CONFIGURATION"
    elif type(error).__name__ in ("DatasetNotFoundError", "RepositoryNotFoundError"):
        step = "check the name at https://huggingface.co/datasets"
    else:
        step = "check the network, or fetch its parquet files by hand and use --from"
    return DataError(f"{data} cannot be read: {reason}; {step}")
