"""The texts that translations are scored on: by name as sacreBLEU knows them, or from files."""

import difflib
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import SentencePair
from nmt.errors import ConfigError, DataError, NmtError
from nmt.evaluation.metrics import bleu_tokenizer
from nmt.evaluation.paper_bleu import codes_of

if TYPE_CHECKING:
    from sacrebleu.dataset.base import Dataset

OWN_SETS = ("validation", "test")
"""names of the sets that a run's own configuration gives"""
SIZES = {
    **dict.fromkeys((("wmt13", pair) for pair in ("en-de", "de-en", "en-fr", "fr-en")), 3000),
    **dict.fromkeys((("wmt14/full", pair) for pair in ("en-de", "de-en", "en-fr", "fr-en")), 3003),
}
"""sentences in the sets of the paper, by sacreBLEU's name and languages"""
FINGERPRINTS = {
    "d7ea35ab91ff3709e03ad9cb6bf5b4f2cc775cd2d72efd5254c4aec5e69663ca": ("wmt13", "en", "de"),
    "909b63be5df3eb8c13e1d5967bf3f0adfdb9f6ed5e638c5bffff563ee2ff7f41": ("wmt13", "en", "fr"),
    "ae5d110486bc33d7175e9e28c7d0051eb3e5fcd2166dd93371089852c091a20e": ("wmt14/full", "en", "de"),
    "7294bccf2879a97b3706b95c9595f1459617a8ee7130d5d8581c910e69736971": ("wmt14/full", "de", "en"),
    "2bd07dc204f965bf88e90adb6223a8cb850f9bf9840df6af1f4945195936656e": ("wmt14/full", "en", "fr"),
    "9a12cb6e8efb3509ebede627e4a9c83ee64935509d561ff70f4b7bd5f93f6096": ("wmt14/full", "fr", "en"),
}
"""SHA-256 of the references as UTF-8 with line feeds, for files that come without a name"""


@dataclass(frozen=True)
class EvaluationSet:
    """References, and what is known of them."""

    name: str
    """what it was asked for by: a name, or a file"""
    references: list[str]
    sources: list[str] | None = None
    languages: tuple[str, str] | None = None
    official_name: str = ""
    """sacreBLEU's, if it is one of its sets"""

    def __post_init__(self) -> None:
        if self.sources is not None and len(self.sources) != len(self.references):
            raise DataError(
                f"{self.name}: {len(self.sources)} sentences and {len(self.references)} "
                "references; expected as many"
            )

    def tokenizer(self, tokenized: bool) -> str:
        """`bleu_tokenizer` for the target language, as far as it is known."""
        return bleu_tokenizer(self.languages[1] if self.languages else "", tokenized)

    def as_json(self) -> dict[str, object]:
        """What tells this set from any other; `sha256` is that of the references."""
        return {
            "test_set": self.name,
            "official_name": self.official_name or None,
            "languages": "-".join(self.languages) if self.languages else None,
            "sha256": hash_references(self.references),
            "sentences": len(self.references),
        }

    def __str__(self) -> str:
        name = f"the run's {self.name} set" if self.name in OWN_SETS else self.name
        known = self.official_name
        return f"{name} ({known})" if known and known != name else name


def set_of_pairs(
    name: str, pairs: Iterable[SentencePair], languages: tuple[str, str] | None
) -> EvaluationSet:
    """A set of texts from anywhere; the paper's test sets are recognised by their references.

    newstest2013 has the same German for English and for French: with other `languages` than the
    paper's it is none of them. A country changes nothing.
    """
    pairs = list(pairs)
    references = [pair.target for pair in pairs]
    known, *found = recognised(references) or ("",)
    paper = (found[0], found[1]) if found else None
    if paper and (languages is None or codes_of(languages) == paper):
        languages = paper
    else:
        known = ""
    return EvaluationSet(name, references, [pair.source for pair in pairs], languages, known)


def set_of_references(
    name: str, references: list[str], languages: tuple[str, str] | None
) -> EvaluationSet:
    """The same where the sources are not at hand."""
    known = set_of_pairs(name, (SentencePair("", line) for line in references), languages)
    return replace(known, sources=None)


def recognised(references: Sequence[str]) -> tuple[str, str, str] | None:
    """sacreBLEU's name and the languages, if these are the references of a set of the paper."""
    return FINGERPRINTS.get(hash_references(references))


def hash_references(references: Sequence[str]) -> str:
    """SHA-256 of the references as `sha256sum` finds it of their file, if that has line feeds."""
    text = "".join(f"{line}\n" for line in references)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def name_in_sacrebleu(name: str) -> str:
    """sacreBLEU's name for what WMT and the paper call newstest2014, newstest2013 and so on."""
    if name == "newstest2014":
        return "wmt14/full"
    return re.sub(r"^newstest20(?=\d\d$)", "wmt", name)


def official_set(name: str, languages: tuple[str, str]) -> EvaluationSet:
    """A test set as sacreBLEU knows it (wmt13, wmt14/full, …), downloaded by it where need be.

    newstest2014 is the whole wmt14/full, as in the paper. sacreBLEU keeps test sets in the folder
    that the environment variable SACREBLEU names, or else in ~/.sacrebleu. Where a set has several
    references, they are those of the first. It knows languages without their countries.

    Raises:
        ConfigError: sacreBLEU has no set of that name, or not in these languages.
        DataError: it cannot be downloaded, or is damaged.
    """
    known, datasets = name_in_sacrebleu(name), _datasets()
    if known not in datasets:
        near = difflib.get_close_matches(name, datasets, n=1)
        hint = f"did you mean '{near[0]}'?" if near else "known are wmt13, wmt14/full and others"
        raise ConfigError(f"sacreBLEU has no test set '{name}'; {hint} (see `sacrebleu --list`)")
    languages = codes_of(languages)
    pair, pairs = "-".join(languages), datasets[known].langpairs
    if pair not in pairs:
        raise ConfigError(f"test set '{name}' has no {pair}; it has {', '.join(sorted(pairs))}")
    source, target, folder = _files_of(known, pair)
    size = SIZES.get((known, pair))
    if len(source) != len(target) or not source or size not in (None, len(source)):
        expected = f"{size} of each" if size else "as many and at least one"
        raise DataError(
            f"{folder}: {len(source)} sentences and {len(target)} references of {pair}, expected "
            f"{expected}; it was downloaded in part: delete it and try again"
        )
    return EvaluationSet(name, target, source, languages, known)


def _datasets() -> "dict[str, Dataset]":
    from sacrebleu.dataset import DATASETS

    return DATASETS


def _files_of(name: str, pair: str) -> tuple[list[str], list[str], Path]:
    """Sources, references, and the folder that they lie in."""
    from sacrebleu.utils import SACREBLEU_DIR, get_reference_files, get_source_file

    folder = Path(SACREBLEU_DIR, name)
    try:
        files = get_source_file(name, pair), get_reference_files(name, pair)[0]
        source, target = (list(read_lines(Path(file))) for file in files)
    except NmtError:
        raise
    except (Exception, SystemExit) as error:  # it ends the program itself where a hash is wrong
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"test set '{name}' cannot be had from sacreBLEU: {reason}; check the network, delete "
            f"{folder} and try again, or give the files with --source and --reference"
        ) from error
    return source, target, folder
