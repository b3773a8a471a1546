"""The registry of known corpora: what they are, where each comes from, and how it gets here.

The text of a corpus lies in `<data.directory>/NAME/PAIR/{train,validation,test}.LANGUAGE`. Where
the environment variable NMT_TEST_DATA names a folder that holds copies, nothing is downloaded.
"""

import difflib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from nmt.config import DataConfig, TextPair
from nmt.data.corpora import demo_corpus, iwslt2017, multi30k, tatoeba
from nmt.data.corpora.corpus import Corpus
from nmt.data.corpora.download import Log, Origin
from nmt.data.corpora.folders import locked, new_folder
from nmt.data.corpora.hub import HubData, write_hub_text
from nmt.data.corpora.open_corpora import from_address
from nmt.data.corpora.provenance import Provenance
from nmt.data.corpora.splits import SPLITS
from nmt.errors import ConfigError


@dataclass(frozen=True)
class Splits:
    """The files of each split, source side and target side."""

    train: list[TextPair]
    validation: TextPair
    test: TextPair | None


def _write_demo(folder: Path, languages: tuple[str, str], origin: Origin) -> None:
    origin.log("generating the demo corpus")
    demo_corpus.write(folder)


def _write_wmt14(folder: Path, languages: tuple[str, str], origin: Origin) -> None:
    other = next(language for language in languages if language != "en")
    data = HubData("wmt/wmt14", f"{other}-en", _WMT14_REVISION, SPLITS)
    write_hub_text(data, languages, folder, origin)


def _write_opus_books(folder: Path, languages: tuple[str, str], origin: Origin) -> None:
    pair = "-".join(sorted(languages))
    data = HubData("Helsinki-NLP/opus_books", pair, _OPUS_BOOKS_REVISION)
    write_hub_text(data, languages, folder, origin)


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Split a text such as "en-de en-fr" into pairs of language codes."""
    return tuple((pair[:2], pair[3:]) for pair in text.split())


# the conversion to parquet, of April 2024
_WMT14_REVISION = "b199e406369ec1b7634206d3ded5ba45de2fe696"
_OPUS_BOOKS_REVISION = "1f9f6191d0e91a3c539c2595e2fe48fc1420de9b"

_CORPORA = (
    Corpus(
        name="demo",
        description="generated from a small grammar; trains in minutes, needs no network",
        language_pairs=_pairs("en-de"),
        pairs="32,000",
        download="nothing",
        licence="as this program",
        url="nmt/data/corpora/demo_corpus.py",
        write=_write_demo,
    ),
    Corpus(
        name="multi30k",
        description="descriptions of photographs, raw text; test set 2016 Flickr",
        language_pairs=_pairs("en-de en-fr de-fr"),
        pairs="29,000",
        download="1.3 MB",
        licence="research and education, not commercial",
        url="https://github.com/multi30k/dataset",
        write=multi30k.write_raw,
    ),
    Corpus(
        name="multi30k_tokenized",
        description="the same lower-cased and tokenised by Moses, as older papers score it",
        language_pairs=_pairs("en-de en-fr de-fr"),
        pairs="29,000",
        download="4.3 MB",
        licence="research and education, not commercial",
        url="https://github.com/multi30k/dataset",
        write=multi30k.write_tokenized,
        copy="multi30k_tok",
    ),
    Corpus(
        name="tatoeba_en_fr",
        description="short everyday sentences by volunteers; held-out sets made here",
        language_pairs=_pairs("en-fr"),
        pairs="160,000",
        download="about 4 MB",
        licence="CC BY 2.0, tatoeba.org and www.manythings.org/anki",
        url="https://tatoeba.org",
        write=tatoeba.write,
    ),
    Corpus(
        name="wmt14",
        description="the paper's task; validation newstest2013, test newstest2014",
        language_pairs=_pairs("en-de en-fr"),
        pairs="4.5 M (de), 40.8 M (fr)",
        download="0.8 GB (de), about 8 GB (fr)",
        licence="research; see the description of each part",
        url="https://huggingface.co/datasets/wmt/wmt14",
        write=_write_wmt14,
    ),
    Corpus(
        name="iwslt2017",
        description="TED talks; validation dev2010, test tst2010 to tst2015 (it, nl, ro: tst2010)",
        language_pairs=iwslt2017.PAIRS,
        pairs="206,112 (de), 232,825 (fr), 231,619 (it)",
        download="about 17 to 28 MB, 329 MB for it, nl and ro",
        licence="CC BY-NC-ND 4.0",
        url="https://huggingface.co/datasets/IWSLT/iwslt2017",
        write=iwslt2017.write,
    ),
    Corpus(
        name="opus_books",
        description="novels out of copyright, aligned by sentence; held-out sets made here",
        language_pairs=_pairs(
            "en-fr en-it de-en ca-en el-en en-eo en-es en-fi en-hu en-nl en-no en-pl en-pt en-ru "
            "en-sv ca-de ca-hu ca-nl de-eo de-es de-fr de-hu de-it de-nl de-pt de-ru el-es el-fr "
            "el-hu eo-es eo-fr eo-hu eo-it eo-pt es-fi es-fr es-it es-nl es-no es-pt es-ru fi-fr "
            "fi-no fi-pl fr-hu fr-it fr-nl fr-no fr-pl fr-pt fr-ru fr-sv hu-it hu-nl hu-no hu-pl "
            "hu-pt hu-ru it-nl it-pt it-ru it-sv"
        ),
        pairs="127,085 (en-fr), 32,332 (en-it), held-out sets included",
        download="21 MB (en-fr), less for the others",
        licence="personal, educational and research use",
        url="https://huggingface.co/datasets/Helsinki-NLP/opus_books",
        write=_write_opus_books,
    ),
)


def known_corpora() -> tuple[Corpus, ...]:
    """Every corpus that `data.corpus` and `nmt data download` know by name."""
    return _CORPORA


def find_corpus(name: str) -> Corpus:
    """The known corpus of that name, or the one at that address (`hf:…`, `opus:…`).

    Raises:
        ConfigError: naming the nearest name, or all.
    """
    if found := from_address(name):
        return found
    names = [corpus.name for corpus in _CORPORA]
    if name in names:
        return _CORPORA[names.index(name)]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(names)}"
    raise ConfigError(f"unknown corpus '{name}'; {hint} (see `nmt data list`)")


def resolve(config: DataConfig, log: Log = lambda message: None) -> Splits:
    """Find the files of each split, getting the corpus first where it is not here yet.

    Files of one's own take the place of the corpus's, split by split.

    Raises:
        ConfigError: a split to learn from or to watch is not given, an unknown corpus, or one
            without these languages.
        DataError: the corpus cannot be had.
    """
    train, validation, test = config.train, config.validation, config.test
    if config.corpus and not (train and validation and test):
        corpus = find_corpus(config.corpus)
        languages = corpus.pair_of(config.source_language, config.target_language)
        found = obtain_corpus(corpus, languages, Path(config.directory), None, log)
        train = train or found.train
        validation = validation or found.validation
        test = test or found.test
    if not train or validation is None:
        missing = "data.validation" if train else "data.train"
        raise ConfigError(
            f"{missing} is not given; name its source and target files, or set data.corpus to a "
            "known corpus (`nmt data list`)"
        )
    return Splits(train, validation, test)


def is_at_hand(config: DataConfig) -> bool:
    """Whether `resolve` would have nothing to download."""
    if not config.corpus or (config.train and config.validation and config.test):
        return True
    corpus = find_corpus(config.corpus)
    languages = corpus.pair_of(config.source_language, config.target_language)
    return _folder_of(corpus, languages, Path(config.directory)).is_dir()


def find_splits(config: DataConfig) -> Splits | None:
    """As `resolve`, of what is here already: None where the corpus would have to be fetched.

    Raises:
        ConfigError: as `resolve`.
    """
    return resolve(config) if is_at_hand(config) else None


def obtain_corpus(
    corpus: Corpus, languages: tuple[str, str], directory: Path, copies: Path | None, log: Log
) -> Splits:
    """Put the corpus into `directory` unless it is there; `copies` holds its upstream files.

    Raises:
        DataError: it cannot be had; what is there afterwards is whole.
    """
    folder = _folder_of(corpus, languages, directory)
    home = folder.parent
    if not folder.is_dir():
        with locked(home, folder.name, log):
            if not folder.is_dir():
                downloads = home / f"{folder.name}.downloads"
                record = Provenance(home / f"{folder.name}.source.json")
                origin = Origin(copies or _test_data(corpus), downloads, log, record)
                with new_folder(folder) as new:
                    corpus.write(new, languages, origin)
                shutil.rmtree(downloads, ignore_errors=True)
    train, validation, test = (_text_pair(folder, split, languages) for split in SPLITS)
    return Splits([train], validation, test)


def _folder_of(corpus: Corpus, languages: tuple[str, str], directory: Path) -> Path:
    return directory / corpus.folder / "-".join(sorted(languages))


def _text_pair(folder: Path, split: str, languages: tuple[str, str]) -> TextPair:
    source, target = (str(folder / f"{split}.{language}") for language in languages)
    return TextPair(source=source, target=target)


def _test_data(corpus: Corpus) -> Path | None:
    """The folder of local copies, where there is one."""
    root = os.environ.get("NMT_TEST_DATA")
    folder = Path(root) / (corpus.copy or corpus.folder) if root else None
    return folder if folder and folder.is_dir() else None
