"""Texts that translations are scored on: a set of a run, of sacreBLEU by name, or from files."""

import contextlib
import difflib
import functools
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.data.corpora.catalogue import Listing
from nmt.data.corpora.registry import obtain_splits
from nmt.data.language_tags import both_tags
from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.data.text.remote_files import is_file, with_urls
from nmt.errors import ConfigError, DataError, Log, NmtError, Progress
from nmt.evaluation.metrics import bleu_tokenizer
from nmt.evaluation.paper_bleu import language_codes
from nmt.files import read_json_or_empty, write_atomically
from nmt.recipe.config import DataConfig
from nmt.run.checkpoint_files import MANIFEST, WEIGHTS
from nmt.run.directory import find_run

if TYPE_CHECKING:
    from nmt.translation.translator import Translator

OWN_SETS = ("validation", "test")
"""names of the sets in the configuration of a run"""
PAPER_PAIRS = ("en-de", "de-en", "en-fr", "fr-en")
"""the languages of the paper in both directions, for which `PAPER_SIZES` holds"""
PAPER_SIZES = {"wmt13": 3000, "wmt14/full": 3003}
"""number of sentences in the sets of the paper, by sacreBLEU's name"""
FINGERPRINTS = {
    "d7ea35ab91ff3709e03ad9cb6bf5b4f2cc775cd2d72efd5254c4aec5e69663ca": ("wmt13", "en", "de"),
    "909b63be5df3eb8c13e1d5967bf3f0adfdb9f6ed5e638c5bffff563ee2ff7f41": ("wmt13", "en", "fr"),
    "ae5d110486bc33d7175e9e28c7d0051eb3e5fcd2166dd93371089852c091a20e": ("wmt14/full", "en", "de"),
    "7294bccf2879a97b3706b95c9595f1459617a8ee7130d5d8581c910e69736971": ("wmt14/full", "de", "en"),
    "2bd07dc204f965bf88e90adb6223a8cb850f9bf9840df6af1f4945195936656e": ("wmt14/full", "en", "fr"),
    "9a12cb6e8efb3509ebede627e4a9c83ee64935509d561ff70f4b7bd5f93f6096": ("wmt14/full", "fr", "en"),
}
"""sacreBLEU's name and languages by the SHA-256 of the references, to recognise them in files"""


@dataclass(frozen=True)
class EvaluationSet:
    """A test set: reference translations, with sources and languages if known (else None)."""

    name: str
    """name or file that the user gave"""
    references: list[str]
    sources: list[str] | None = None
    languages: tuple[str, str] | None = None
    """codes of source and target language"""
    official_name: str = ""
    """sacreBLEU's name, or empty if the text is not one of its sets"""
    tokenized: bool = False
    """whether the text is tokenised, so that the metrics split it at spaces"""

    @property
    def tokenizer(self) -> str:
        """Name of sacreBLEU's tokenizer for the target language; `none` for tokenised text."""
        target = self.languages[1] if self.languages else ""
        return bleu_tokenizer(target, self.tokenized, self.references)

    def first(self, count: int | None) -> "EvaluationSet":
        """Return the set of the first sentences; of all if `count` is None."""
        if count is None or count >= len(self.references):
            return self
        return replace(
            self,
            references=self.references[:count],
            sources=self.sources and self.sources[:count],
            official_name="",
        )

    def as_json(self) -> dict[str, object]:
        """Return name, languages, size and SHA-256 of the references, which identify the set."""
        return {
            "test_set": self.name,
            "official_name": self.official_name or None,
            "languages": "-".join(self.languages) if self.languages else None,
            "sha256": hash_references(self.references),
            "sentences": len(self.references),
        }

    def __str__(self) -> str:
        name = f"the run's {self.name} set" if self.name in OWN_SETS else self.name
        if self.official_name and self.official_name != name:
            return f"{name} ({self.official_name})"
        return name


def set_of_pairs(
    name: str,
    pairs: Iterable[SentencePair],
    languages: tuple[str, str] | None,
    tokenized: bool = False,
) -> EvaluationSet:
    """Build a test set with sources from pairs, otherwise as `set_of_references` does."""
    pairs = list(pairs)
    test_set = set_of_references(name, [pair.target for pair in pairs], languages, tokenized)
    return replace(test_set, sources=[pair.source for pair in pairs])


def set_of_references(
    name: str,
    references: list[str],
    languages: tuple[str, str] | None,
    tokenized: bool = False,
) -> EvaluationSet:
    """Build a test set without sources; a test set of the paper is recognised by its references.

    A recognised set gets its official name and languages. With other `languages` than the paper's
    (countries are ignored) it is not recognised: newstest2013 has the same German references for
    English-German and for French-German. `tokenized`: the references are tokenised already.
    """
    official_name = ""
    recognised = FINGERPRINTS.get(hash_references(references))
    if recognised:
        known_name, source, target = recognised
        if languages is None or language_codes(languages) == (source, target):
            official_name, languages = known_name, (source, target)
    return EvaluationSet(name, references, None, languages, official_name, tokenized)


def hash_references(references: Sequence[str]) -> str:
    """Return the SHA-256 of the references as `sha256sum` prints it for a file with these lines."""
    text = "".join(f"{line}\n" for line in references)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def official_set(name: str, languages: tuple[str, str]) -> EvaluationSet:
    """Return a test set of sacreBLEU (wmt13, wmt14/full, …), downloaded by it if necessary.

    `name` may also be that of WMT: newstest2013 is wmt13; newstest2014 is wmt14/full, as in the
    paper. sacreBLEU stores test sets in the folder that the environment variable SACREBLEU names,
    or ~/.sacrebleu. The first of several references is used. Countries in `languages` are ignored.

    Raises:
        ConfigError: sacreBLEU has no set of that name, or not in these languages.
        DataError: The set cannot be downloaded, or is damaged.
    """
    from sacrebleu.dataset import DATASETS
    from sacrebleu.utils import SACREBLEU_DIR, get_reference_files, get_source_file

    official_name = _official_name(name, DATASETS)
    languages = language_codes(languages)
    pair, pairs = "-".join(languages), DATASETS[official_name].langpairs
    if pair not in pairs:
        raise ConfigError(f"test set '{name}' has no {pair}; it has {', '.join(sorted(pairs))}")
    folder = Path(SACREBLEU_DIR, official_name)
    try:
        sources = list(read_lines(Path(get_source_file(official_name, pair))))
        references = list(read_lines(Path(get_reference_files(official_name, pair)[0])))
    except NmtError:  # of `read_lines`: already names the file and what is wrong
        raise
    except (Exception, SystemExit) as error:  # sacreBLEU exits if a checksum is wrong
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"test set '{official_name}' cannot be loaded by sacreBLEU: {reason}; check the "
            f"network, delete {folder} and try again, or give its files as "
            "`source` and `reference`"
        ) from error
    known_size = PAPER_SIZES.get(official_name) if pair in PAPER_PAIRS else None
    # of another set, any size from 1 on is right if both sides have it
    expected_size = max(1, len(sources)) if known_size is None else known_size
    if not len(sources) == len(references) == expected_size:
        expected = f"{known_size} of each" if known_size else "as many and at least one"
        raise DataError(
            f"{folder}: {len(sources)} sentences and {len(references)} references of {pair}, "
            f"expected {expected}; it was downloaded in part: delete it and try again"
        )
    return EvaluationSet(name, references, sources, languages, official_name)


def _official_name(name: str, official_names: Collection[str]) -> str:
    """Return sacreBLEU's name of a test set; raise a ConfigError if it has no such set."""
    official_name = re.sub(r"^newstest20(?=\d\d$)", "wmt", name)
    if name == "newstest2014":  # sacreBLEU's wmt14 has fewer sentences than the paper's set
        official_name = "wmt14/full"
    if official_name in official_names:
        return official_name
    similar = difflib.get_close_matches(name, official_names, n=1)
    hint = f"did you mean '{similar[0]}'?" if similar else "known are wmt13, wmt14/full and others"
    raise ConfigError(f"sacreBLEU has no test set '{name}'; {hint} (see `sacrebleu --list`)")


def list_official_sets(languages: tuple[str, str]) -> list[Listing]:
    """Return the sets of sacreBLEU from the first language into the second, without a download."""
    from sacrebleu.dataset import DATASETS

    pair = "-".join(language_codes(languages))
    uses = {"train": "training", "dev": "validation", "valid": "validation"}
    listings = []
    for name, dataset in DATASETS.items():
        part = re.search(r"/(train|dev|valid)", name)  # mtnt1.1/valid is not a test set
        if pair in dataset.langpairs:
            listings.append(Listing(name, "sacreBLEU", use=uses[part[1]] if part else "test"))
    return listings


def find_split(config: DataConfig, name: str, log: Log) -> EvaluationSet:
    """Return the "validation" or "test" set that a configuration names.

    Each source begins with the tags of its text, if it has any (a tag may ask for a target
    language). `name` may also be that of one text of the test or validation set. A known corpus is
    downloaded if it is not on this machine; `log` is called with messages.

    Raises:
        ConfigError: The configuration names no such set.
        DataError: A file of the set is missing.
    """
    splits = obtain_splits(config, log)
    texts = {"validation": splits.validation, "test": splits.test}.get(name)
    if texts is None:  # `name` is that of a single text: the first one that has it
        texts = [text for text in (*splits.test, *splits.validation) if text.name == name][:1]
    if not texts:
        raise ConfigError(
            f"the run's configuration names no {name} set; give `source` and `reference`, "
            "or score the `test_set` validation"
        )
    for path in (with_urls(Path(path)) for text in texts for path in text.paths):
        if not is_file(path):
            raise DataError(
                f"{path}: no such file, neither from this folder nor from the one in which the run "
                "was trained; give its files as `source` and `reference`"
            )
    pairs = (
        pair
        for text in texts
        for pair in ParallelText(text, config.languages).tagged_pairs(both_tags(config, text))
    )
    return set_of_pairs(name, pairs, config.languages_of(texts), config.tokenized)


def own_sets(config: DataConfig) -> tuple[str, ...]:
    """Return the names that `find_split` knows: of the sets, and of their texts with a name."""
    return *OWN_SETS, *(text.name for text in (*config.test, *config.validation) if text.name)


def translate_test_set(
    translator: "Translator",
    test_set: EvaluationSet,
    progress: Progress = lambda lines: None,
) -> list[str]:
    """Return the best translation of each source of a test set.

    `progress` is called with the number of lines done since its last call.

    Raises:
        DataError: The test set has no sources or no sentences.
    """
    if not test_set.sources:
        raise DataError(f"{test_set}: no sentences to translate; expected at least one")
    translations = translator.translations(test_set.sources, progress=progress)
    return [translation.text for translation in translations]


def translate_once(
    translator: "Translator",
    test_set: EvaluationSet,
    progress: Progress = lambda lines: None,
) -> list[str]:
    """As `translate_test_set`, but keep the translations in the run, and read them there if kept.

    They are kept by their weights, settings, sources, and the code of this package: if one of these
    is another, they are made again. The weights have to be those of a run directory, unchanged.

    Raises:
        DataError: The test set has no sources or no sentences.
    """
    folder, searcher = translator.loaded.path, translator.searcher
    weights = read_json_or_empty(folder / MANIFEST).get(WEIGHTS)
    settings = translator.settings.model_dump(exclude={"batch_tokens"})
    made_by = [weights, settings, searcher.precision, test_set.sources, _code_digest()]
    key = hashlib.sha256(json.dumps(made_by).encode()).hexdigest()[:16]
    file = find_run(folder).test_translations / f"{key}.txt"
    if weights and file.is_file():
        return list(read_lines(file))
    translations = translate_test_set(translator, test_set, progress)
    with contextlib.suppress(OSError):  # the run may be read-only
        file.parent.mkdir(exist_ok=True)
        write_atomically(file, "".join(f"{line}\n" for line in translations))
    return translations


@functools.cache
def _code_digest() -> str:
    """Return the SHA-256 of all source files of this package, which decide what is translated."""
    package = Path(__file__).parent.parent
    files = sorted(each for suffix in ("py", "c", "h") for each in package.rglob(f"*.{suffix}"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
