"""The registry of known corpora: what they are, where each comes from, and its download.

`known_corpora.yaml` lists them. A name may also be an address: of any translation data set of the
Hugging Face Hub (`hf:…`), or of any corpus of OPUS (`opus:…`).

The text of a corpus is in `<data.directory>/NAME/PAIR/{train,validation,test}.LANGUAGE`. Nothing is
downloaded if the folder that the environment variable NMT_TEST_DATA names has copies of it.
"""

import difflib
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from nmt.data.corpora import by_language, demo_corpus, iwslt2014, iwslt2017
from nmt.data.corpora.download import disk_errors
from nmt.data.corpora.hub import HubData, write_hub_text
from nmt.data.corpora.opus import write_moses
from nmt.data.corpora.origin import Origin, RemoteText, obtain, test_data
from nmt.data.corpora.splits import SPLITS, Languages, complete_splits, split_files, write_split
from nmt.data.text.lines import check_no_pipe, no_such_file
from nmt.data.text.pair_folder import synthetic_text
from nmt.data.text.parallel_text import ParallelText
from nmt.data.text.remote_files import is_file, with_urls
from nmt.errors import ConfigError, DataError, Log, NmtError
from nmt.files import create_folder_atomically, locked
from nmt.recipe import strict_yaml
from nmt.recipe.config import DataConfig, TextPair

_WORD = r"[A-Za-z0-9_][\w.-]*"
_HUB = re.compile(
    rf"hf:(?P<repository>{_WORD}/{_WORD})(@(?P<revision>{_WORD}(/{_WORD})*))?(:(?P<config>{_WORD}))?",
    re.ASCII,
)
_OPUS = re.compile(rf"opus:(?P<corpus>{_WORD})(:(?P<version>{_WORD}))?", re.ASCII)
# a language code, which becomes a part of file names
_LANGUAGE = re.compile(r"[_-]*[A-Za-z0-9][A-Za-z0-9_-]*")
# a configuration that names its languages: en-de, wmt_de-en
_PAIR = re.compile(r"(?:^|.*[-_])([a-z]{2})[-_]([a-z]{2})")


@dataclass(frozen=True)
class Corpus:
    """A corpus, and what `nmt data list` prints about it."""

    name: str
    language_pairs: tuple[Languages, ...]
    """each in both directions; the first is the default. Empty: any two languages, which are not
    checked before the download"""
    write: Callable[[Path, Languages, Origin], None]
    """writes {train,validation,test}.LANGUAGE into an empty folder"""
    description: str = ""
    pairs: str = ""
    """the number of training pairs, in words for people"""
    download: str = ""
    """the size of the download, in words for people"""
    licence: str = ""
    url: str = ""
    """the address of its description"""
    test_data: str = ""
    """the name of its folder in NMT_TEST_DATA, if it is not `folder`"""
    use: str = "training, validation, test"
    """the splits that it has"""
    codes: str = ""
    """the column of languages.tsv that has a code for each of its languages, if they are many"""

    @property
    def folder(self) -> str:
        """The name of its folder: the corpus's name without the separators of an address."""
        return self.name.replace("/", "--").replace(":", "--")

    def pair_of(self, source: str | None, target: str | None) -> Languages:
        """Return the first (source, target) of the corpus that fits; None stands for any language.

        A corpus that lists no pairs takes any two languages that are named.

        Raises:
            ConfigError: the corpus has no such pair, or its languages must be named by their codes.
        """
        for first, second in self.language_pairs:
            for pair in ((first, second), (second, first)):
                if source in (None, pair[0]) and target in (None, pair[1]):
                    return pair
        if self.language_pairs:
            pairs = ", ".join(f"{first}-{second}" for first, second in self.language_pairs)
            raise ConfigError(
                f"corpus '{self.name}' has no {source or 'any'}-{target or 'any'}; it has {pairs}, "
                "in both directions (data.source_language, data.target_language)"
            )
        for language in (source, target):
            if language is not None and not _LANGUAGE.fullmatch(language):
                raise ConfigError(
                    f"'{language}' names no language of a corpus; expected a code, such as pt_br"
                )
        if source is None or target is None or source == target:
            raise ConfigError(
                f"corpus '{self.name}': which languages? got {source or 'none'} and "
                f"{target or 'none'}; name two (`source_language` and `target_language`, of data "
                "in a recipe, or with nmt init --languages)"
            )
        return source, target


@dataclass(frozen=True)
class Splits:
    """The texts of each split; an empty `test` means no test set.

    The last training texts are those of data.synthetic.
    """

    train: list[TextPair]
    validation: list[TextPair]
    test: list[TextPair]

    @property
    def held_out(self) -> list[TextPair]:
        """The texts that are never learnt: validation and test set."""
        return [*self.validation, *self.test]


def _write_demo(folder: Path, languages: Languages, origin: Origin) -> None:
    """Write the demo corpus, which is not downloaded but generated."""
    origin.log("generating the demo corpus")
    demo_corpus.write(folder)


def _write_files(
    folder: Path, languages: Languages, origin: Origin, texts: Mapping[str, Any]
) -> None:
    """Write a corpus of files to download; `texts` maps SPLIT.LANGUAGE to fields of RemoteText."""
    for split in SPLITS:
        for language in languages:
            name = f"{split}.{language}"
            obtain(RemoteText(**texts[name]), folder / name, origin)


def _write_table(
    folder: Path,
    languages: Languages,
    origin: Origin,
    table: Mapping[str, Any],
    columns: Languages,
) -> None:
    """Write a corpus that is one TSV file, `table`; `columns` are the languages of its columns."""
    path = folder / "table.tsv"
    obtain(RemoteText(**table), path, origin)
    write_split(folder, "train", columns, ParallelText(TextPair(file=str(path))))
    path.unlink()
    complete_splits(folder, languages, origin.log)


def _write_hub(
    folder: Path,
    languages: Languages,
    origin: Origin,
    repository: str,
    revision: str,
    configurations: Mapping[str, str] = {},
    splits: Sequence[str] = ("train",),
) -> None:
    """Write a data set of the Hub; its configuration is named by the languages, as in "de-en"."""
    pair = "-".join(sorted(languages))
    configuration = configurations.get(pair, pair)  # some pairs have another name
    data = HubData(repository, configuration, revision, tuple(splits))
    write_hub_text(folder, languages, origin, data=data)


_WRITERS: dict[str, Callable[..., None]] = {
    "demo": _write_demo,
    "files": _write_files,
    "table": _write_table,
    "hub": _write_hub,
    "iwslt2014": iwslt2014.write,
    "iwslt2017": iwslt2017.write,
    "by_language": by_language.write,
}


def _known_corpus(name: str, entry: Mapping[str, Any]) -> Corpus:
    """Return the corpus that an entry of known_corpora.yaml describes."""
    facts = dict(entry)
    pairs = tuple((pair[:2], pair[3:]) for pair in facts.pop("languages", "").split())
    codes = {"column": entry["codes"]} if "codes" in entry else {}
    write = partial(_WRITERS[facts.pop("source")], **facts.pop("settings", {}), **codes)
    return Corpus(name, pairs, write, **facts)


_YAML = files("nmt.data.corpora") / "known_corpora.yaml"
_KNOWN, _ = strict_yaml.parse(_YAML.read_text("utf-8"), "known_corpora.yaml")
CORPORA = {name: _known_corpus(name, entry) for name, entry in _KNOWN["corpora"].items()}
"""every corpus that `data.corpus` and `nmt data download` know by name"""
ADDRESSES: dict[str, str] = _KNOWN["addresses"]
"""the forms of an address (`hf:…`), and a description of each"""


def find_corpus(name: str) -> Corpus:
    """Return the known corpus `name`, or the corpus at the address `name` (`hf:…`, `opus:…`).

    Raises:
        ConfigError: there is no such corpus; the message has the nearest name, or all names.
    """
    if name.startswith("hf:"):
        match = _match(_HUB, name, "hf:OWNER/NAME:CONFIGURATION, such as hf:wmt/wmt16:de-en")
        data = HubData(match["repository"], match["config"], match["revision"])
        # a configuration such as wmt_de-en names the languages
        pair = _PAIR.fullmatch(match["config"] or "")
        pairs = ((pair[1], pair[2]),) if pair and pair[1] != pair[2] else ()
        return Corpus(name, pairs, partial(write_hub_text, data=data))
    if name.startswith("opus:"):
        match = _match(_OPUS, name, "opus:CORPUS or opus:CORPUS:VERSION, such as opus:Books:v1")
        write = partial(write_moses, corpus=match["corpus"], version=match["version"])
        return Corpus(name, (), write)
    if name in CORPORA:
        return CORPORA[name]
    near = difflib.get_close_matches(name, CORPORA, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(CORPORA)}"
    raise ConfigError(f"unknown corpus '{name}'; {hint} (see `nmt data list`)")


def _match(pattern: re.Pattern[str], name: str, expected: str) -> re.Match[str]:
    """Return the match of a corpus address.

    Raises:
        ConfigError: the address has another form; `expected` says in the message which is right.
    """
    match = pattern.fullmatch(name)
    if match is None:
        raise ConfigError(f"'{name}' is no address of a corpus; expected {expected}")
    return match


def obtain_splits(config: DataConfig, log: Log = lambda message: None) -> Splits:
    """Return the files of each split; download the configured corpus first if it is missing.

    A split for which the configuration names files consists of those files.

    Raises:
        ConfigError: there is no training or no validation text, the corpus is unknown, or it does
            not have these languages.
        DataError: the corpus cannot be downloaded.
    """
    train, validation, test = config.train, config.validation, config.test
    if config.corpus and not (train and validation and test):
        corpus = find_corpus(config.corpus)
        languages = corpus.pair_of(*config.languages)
        texts = obtain_corpus(corpus, languages, Path(config.directory), copies=None, log=log)
        of_corpus = {split: [text] for split, text in texts.items()}
        # the corpus gives only the splits that the configuration does not
        train = train or of_corpus.get("train", [])
        validation = validation or of_corpus.get("validation", [])
        test = test or of_corpus.get("test", [])
    train = [*train, *(synthetic_text(entry, config.languages) for entry in config.synthetic)]
    if not train or not validation:
        missing = "data.validation" if train else "data.train"
        lacking = f", and corpus '{config.corpus}' has none" if config.corpus else ""
        raise ConfigError(
            f"{missing} is not given{lacking}; name its source and target files, or set "
            "data.corpus to a known corpus (`nmt data list`)"
        )
    return Splits(train, validation, test)


def find_splits(config: DataConfig) -> Splits | None:
    """Return the files of each split, or None if the corpus would have to be downloaded.

    Raises:
        ConfigError: there is no training or no validation text, or no such corpus or languages.
    """
    if config.corpus and not (config.train and config.validation and config.test):
        corpus = find_corpus(config.corpus)
        languages = corpus.pair_of(*config.languages)
        if not _folder_of(corpus, languages, Path(config.directory)).is_dir():
            return None
    return obtain_splits(config)


def find_held_out(config: DataConfig) -> tuple[list[TextPair], list[str]]:
    """Return the validation and test texts that can be read, and names of those that cannot.

    Nothing is downloaded, and the recipe may lack training text.
    """
    validation, test, missing = config.validation, config.test, list[str]()
    if config.corpus and not (validation and test):
        try:
            corpus = find_corpus(config.corpus)
            languages, directory = corpus.pair_of(*config.languages), Path(config.directory)
            is_here = _folder_of(corpus, languages, directory).is_dir()
        except ConfigError:
            is_here = False
        if is_here:
            texts = obtain_corpus(
                corpus, languages, directory, copies=None, log=lambda message: None
            )
            of_corpus = {split: [text] for split, text in texts.items()}
            validation = validation or of_corpus.get("validation", [])
            test = test or of_corpus.get("test", [])
        else:
            missing.append(f"corpus '{config.corpus}'")
    texts_here = []
    for text in (*validation, *test):
        if _can_be_read(text):
            texts_here.append(text)
        else:
            missing.append(", ".join(text.paths))
    return texts_here, missing


def _can_be_read(text: TextPair) -> bool:
    """Return whether the files of a text are there, of this machine or by URL."""
    try:
        return all(is_file(with_urls(Path(path))) for path in text.paths)
    except NmtError:  # the service of a URL cannot be asked
        return False


def obtain_corpus(
    corpus: Corpus, languages: Languages, directory: Path, copies: Path | None, log: Log
) -> dict[str, TextPair]:
    """Return the files of each split that a corpus has; make its folder first if it is missing.

    It is made of the upstream files: those in the folder `copies`, else those in NMT_TEST_DATA,
    else downloads. The record of the downloads stays, to notice if they are other ones next time.

    Raises:
        DataError: the corpus cannot be downloaded or read; its folder is then absent.
    """
    folder = _folder_of(corpus, languages, directory)
    home = folder.parent
    if not folder.is_dir():
        with disk_errors(home), locked(home, folder.name, log):
            if not folder.is_dir():  # no other process has made it meanwhile
                downloads = home / f"{folder.name}.downloads"
                record = home / f"{folder.name}.source.json"
                upstream_files = copies or test_data(corpus.test_data or corpus.folder)
                with create_folder_atomically(folder) as new:
                    corpus.write(new, languages, Origin(upstream_files, downloads, record, log))
                shutil.rmtree(downloads, ignore_errors=True)
    texts = split_files(folder, SPLITS, languages)
    return {split: text for split, text in texts.items() if Path(text.paths[0]).is_file()}


def _folder_of(corpus: Corpus, languages: Languages, directory: Path) -> Path:
    return directory / corpus.folder / "-".join(sorted(languages))


def check_files(texts: Iterable[TextPair], key: str, directory: Path) -> None:
    """Check that the files of `texts` are there; those of a recipe are files of this machine.

    `key` is where the recipe names them, such as data.train; `directory` is data.directory.

    Raises:
        DataError: a file is missing, a folder or a pipe; the message names `nmt data download` if
            it is of a known corpus.
    """
    for path in (Path(path) for text in texts for path in text.paths):
        check_no_pipe(path)
        if not path.is_file():
            hint = _download_of(path, directory) or f"check {key} in the configuration"
            if path.is_dir():
                raise DataError(f"{path}: is a folder, expected a file; {hint}")
            raise DataError(f"{no_such_file(path)}; {hint}")


def _download_of(path: Path, directory: Path) -> str | None:
    """Return which command downloads a file; None if it is not where a known corpus would be.

    A corpus is in `directory`/NAME/PAIR/, where PAIR is such as de-en.
    """
    names = {corpus.folder: name for name, corpus in CORPORA.items()}
    if not path.is_relative_to(directory):
        return None
    match path.relative_to(directory).parts:
        case (folder, pair, _) if folder in names and pair.count("-") == 1:
            one, other = pair.split("-")
            name = names[folder]
            command = f"nmt data download {name} --source-language {one} --target-language {other}"
            if directory != Path("data"):
                command = f"{command} --directory {shlex.quote(str(directory))}"
            return f"`{command}` downloads it"
    return None
