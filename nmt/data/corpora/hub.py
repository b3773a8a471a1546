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

from tqdm import tqdm

from nmt.data.corpora.download import BY_HAND
from nmt.data.corpora.origin import Origin
from nmt.data.corpora.splits import SPLITS, Languages, complete_splits, write_split
from nmt.data.text.parallel_text import TRANSLATION
from nmt.errors import DataError, Log, NmtError

ENDPOINT: str | None = None
"""the URL of the Hub; None: the default of its library"""

_ROWS = 1000  # read at once
_LINE_ENDS = re.compile(r"[\r\n]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
UPSTREAM_SPLITS = {
    "train": ("train",),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test",),
}
"""the names that data sets give to our splits"""
# data sets that are, or were, loading scripts, and corpora with the same text
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
            names = [name for name in UPSTREAM_SPLITS[split] if name in rows]
            if names:
                pairs = _pairs(rows[names[0]], split, languages, data, origin.log)
                write_split(folder, split, languages, pairs)
            elif split in data.splits:
                raise DataError(
                    f"{data}: has no split '{split}', only {', '.join(rows) or 'none'}; choose "
                    "another configuration or data set"
                )
    except NmtError:
        raise
    except Exception as error:  # the library and those that it uses raise dozens of kinds
        raise _explain(data, error) from error
    complete_splits(folder, languages, origin.log)


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
    """Return the commit to load: that in `data`, else that of the first download, else the newest.

    The newest is recorded as that of the first download.
    """
    if data.revision and _COMMIT.fullmatch(data.revision):
        return data.revision
    address = f"{data.repository}@{data.revision or ''}"
    recorded = origin.recall(address).get("revision")
    if recorded is not None:
        return str(recorded)
    from huggingface_hub import HfApi

    newest = HfApi(endpoint=ENDPOINT).dataset_info(data.repository, revision=data.revision).sha
    if newest is None:
        raise DataError(f"{data}: the Hub names no revision of it; name one after an @")
    origin.remember(address, {"revision": newest})
    return newest


def _parquet_files(root: Path, data: HubData) -> dict[str, list[str]]:
    """Return the paths of the parquet files of each of our splits that `root` has."""
    configuration = data.configuration or "default"
    folder = root / configuration if (root / configuration).is_dir() else root
    files: dict[str, list[str]] = {}
    for split, names in UPSTREAM_SPLITS.items():
        patterns = [f"{name}{rest}" for name in names for rest in ("-*.parquet", "/*.parquet")]
        matches = [sorted(folder.glob(pattern)) for pattern in patterns]
        paths = next(filter(None, matches), [])  # those of the first pattern that has any
        if paths:
            files[split] = list(map(str, paths))
        elif split in data.splits:
            raise DataError(f"{folder}: no file called {split}-*.parquet is here")
    return files


def _pairs(
    rows: Any, split: str, languages: Languages, data: HubData, log: Log
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a split; line ends inside a sentence become spaces.

    `rows` is a `datasets.Dataset` or `IterableDataset`. At the end, `log` receives the counts.
    """
    pair_count = changed = 0
    fields: list[Field] = []
    for batch in tqdm(rows.iter(_ROWS), desc=split, unit_scale=_ROWS, disable=None):
        if not fields:
            fields = _fields(batch, languages, data)
            names = [name for name, _ in fields]
            # the names of the columns do not say which language they have
            if split == "train" and {*names}.isdisjoint({TRANSLATION, *languages}):
                columns = " and ".join(f"'{name}'" for name in names)
                log(f"columns {columns} are taken for {languages[0]} and {languages[1]}")
        sources, targets = (_sentences(batch, field, data) for field in fields)
        for raw_source, raw_target in zip(sources, targets, strict=True):
            source, target = _LINE_ENDS.sub(" ", raw_source), _LINE_ENDS.sub(" ", raw_target)
            changed += (source != raw_source) + (target != raw_target)
            pair_count += 1
            yield source, target
    log(f"{split}: {pair_count:,} pairs; line ends inside {changed:,} sentences became spaces")


def _fields(batch: Batch, languages: Languages, data: HubData) -> list[Field]:
    """Return the field of the source and that of the target, judged by the first batch.

    Raises:
        DataError: neither records nor columns have both languages.
    """
    first = next(filter(None, batch.get(TRANSLATION, [])), None)  # a row may be null
    if isinstance(first, Mapping):
        if all(language in first for language in languages):
            return [(TRANSLATION, language) for language in languages]
        text_names = [f"{TRANSLATION}.{key}" for key in first]
    else:
        text_names = [name for name, column in batch.items() if str in map(type, column)]
        if all(language in text_names for language in languages):
            return [(language, None) for language in languages]
        if len(text_names) == 2:
            # two columns of text: the configuration, such as "de-en", may say their order
            words = re.findall(r"[A-Za-z]+", data.configuration or "")
            named = [word for word in words if word in languages]
            order = named if len(named) == 2 else languages
            columns = dict(zip(order, text_names, strict=True))
            return [(columns[language], None) for language in languages]
    source, target = languages
    raise DataError(
        f"{data}: no text of {source} and {target}, "
        f"found {', '.join(text_names) or 'no text at all'}; "
        f"expected {TRANSLATION}.{source} and {TRANSLATION}.{target}, columns called {source} and "
        f"{target}, or two columns of text; choose other languages or another configuration"
    )


def _sentences(batch: Batch, field: Field, data: HubData) -> list[str]:
    """Return the texts of a field in the rows of a batch; null becomes an empty text.

    Raises:
        DataError: a value is not a text.
    """
    column, key = field
    texts = [value[key] if key and value is not None else value for value in batch[column]]
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
            "OPUS (opus:CORPUS); or, if the Hub has its parquet files on the branch "
            f"refs/convert/parquet, {BY_HAND}"
        )
    if "BuilderConfig" in reason or "Config name is missing" in reason:
        step = f"name one of its configurations: hf:{data.repository}:CONFIGURATION"
    elif type(error).__name__ in ("DatasetNotFoundError", "RepositoryNotFoundError"):
        step = "check the name at https://huggingface.co/datasets"
    else:
        step = f"check the network, or {BY_HAND}"
    return DataError(f"{data} cannot be read: {reason}; {step}")
