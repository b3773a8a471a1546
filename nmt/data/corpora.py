"""The registry of known corpora: what they are, where each comes from, and how it gets here.

The text of a corpus lies in `<data.directory>/NAME/PAIR/{train,validation,test}.LANGUAGE`. Where
the environment variable NMT_TEST_DATA names a folder that holds copies, nothing is downloaded.
"""

import difflib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nmt.config import DataConfig, TextPair
from nmt.data import demo_corpus, multi30k, tatoeba
from nmt.data.download import SPLITS, Origin, write_hub_text
from nmt.data.folders import locked, new_folder
from nmt.errors import ConfigError

Log = Callable[[str], None]


@dataclass(frozen=True)
class Splits:
    """The files of each split, source side and target side."""

    train: list[TextPair]
    validation: TextPair
    test: TextPair | None


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus that the toolkit knows how to get."""

    name: str
    description: str
    language_pairs: tuple[tuple[str, str], ...]
    """both directions can be learnt; the pair in most use comes first"""
    pairs: str
    """how many training pairs, for people"""
    licence: str
    url: str
    """where it is described"""
    write: Callable[[Path, tuple[str, str], Origin], None]
    """puts {train,validation,test}.LANGUAGE into a folder"""
    copy: str = ""
    """what its folder in NMT_TEST_DATA is called, if not by its name"""

    def pair_of(self, source: str | None, target: str | None) -> tuple[str, str]:
        """The languages in the order asked for; a language left open is the first that fits.

        Raises:
            ConfigError: naming the pairs that there are.
        """
        for first, second in self.language_pairs:
            for pair in ((first, second), (second, first)):
                if source in (None, pair[0]) and target in (None, pair[1]):
                    return pair
        pairs = ", ".join(f"{first}-{second}" for first, second in self.language_pairs)
        raise ConfigError(
            f"corpus '{self.name}' has no {source or 'any'}-{target or 'any'}; it has {pairs}, in "
            "both directions (data.source_language, data.target_language)"
        )


def _write_demo(folder: Path, languages: tuple[str, str], origin: Origin) -> None:
    origin.log("generating the demo corpus")
    demo_corpus.write(folder)


def _write_wmt14(folder: Path, languages: tuple[str, str], origin: Origin) -> None:
    other = next(language for language in languages if language != "en")
    write_hub_text("wmt/wmt14", f"{other}-en", _WMT14_REVISION, folder, origin)


# the conversion to parquet, of April 2024
_WMT14_REVISION = "b199e406369ec1b7634206d3ded5ba45de2fe696"

_CORPORA = (
    Corpus(
        name="demo",
        description="generated from a small grammar; trains in minutes, needs no network",
        language_pairs=(("en", "de"),),
        pairs="32,000",
        licence="as this program",
        url="nmt/data/demo_corpus.py",
        write=_write_demo,
    ),
    Corpus(
        name="multi30k",
        description="descriptions of photographs, raw text; test set 2016 Flickr",
        language_pairs=(("en", "de"), ("en", "fr"), ("de", "fr")),
        pairs="29,000",
        licence="research and education, not commercial",
        url="https://github.com/multi30k/dataset",
        write=multi30k.write_raw,
    ),
    Corpus(
        name="multi30k_tokenized",
        description="the same lower-cased and tokenised by Moses, as older papers score it",
        language_pairs=(("en", "de"), ("en", "fr"), ("de", "fr")),
        pairs="29,000",
        licence="research and education, not commercial",
        url="https://github.com/multi30k/dataset",
        write=multi30k.write_tokenized,
        copy="multi30k_tok",
    ),
    Corpus(
        name="tatoeba_en_fr",
        description="short everyday sentences by volunteers; held-out sets made here",
        language_pairs=(("en", "fr"),),
        pairs="160,000",
        licence="CC BY 2.0, tatoeba.org and www.manythings.org/anki",
        url="https://tatoeba.org",
        write=tatoeba.write,
    ),
    Corpus(
        name="wmt14",
        description="the paper's task; validation newstest2013, test newstest2014",
        language_pairs=(("en", "de"), ("en", "fr")),
        pairs="4.5 M (de), 40.8 M (fr)",
        licence="research; see the description of each part",
        url="https://huggingface.co/datasets/wmt/wmt14",
        write=_write_wmt14,
    ),
)


def known_corpora() -> tuple[Corpus, ...]:
    """Every corpus that `data.corpus` and `nmt data download` know by name."""
    return _CORPORA


def find_corpus(name: str) -> Corpus:
    """The known corpus of that name.

    Raises:
        ConfigError: naming the nearest name, or all.
    """
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


def obtain_corpus(
    corpus: Corpus, languages: tuple[str, str], directory: Path, copies: Path | None, log: Log
) -> Splits:
    """Put the corpus into `directory` unless it is there; `copies` holds its upstream files.

    Raises:
        DataError: it cannot be had; what is there afterwards is whole.
    """
    home = directory / corpus.name
    folder = home / "-".join(sorted(languages))
    if not folder.is_dir():
        with locked(home, folder.name, log):
            if not folder.is_dir():
                downloads = home / "downloads"
                origin = Origin(copies or _test_data(corpus), downloads, log)
                with new_folder(folder) as new:
                    corpus.write(new, languages, origin)
                shutil.rmtree(downloads, ignore_errors=True)
    train, validation, test = (_text_pair(folder, split, languages) for split in SPLITS)
    return Splits([train], validation, test)


def _text_pair(folder: Path, split: str, languages: tuple[str, str]) -> TextPair:
    source, target = (str(folder / f"{split}.{language}") for language in languages)
    return TextPair(source=source, target=target)


def _test_data(corpus: Corpus) -> Path | None:
    """The folder of local copies, where there is one."""
    root = os.environ.get("NMT_TEST_DATA")
    folder = Path(root) / (corpus.copy or corpus.name) if root else None
    return folder if folder and folder.is_dir() else None
