"""What text there is for two languages: known corpora, OPUS, and data sets of the Hugging Face Hub.

OPUS and the Hub are asked at the same time, `ANSWER_S` seconds at most. catalogue.yaml has the
sizes of the known corpora and the licences of OPUS. It also lists corpora of OPUS, for use when
OPUS does not answer.
"""

import functools
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from tqdm import tqdm

from nmt.data.corpora import hub, opus
from nmt.data.corpora.download import fetch_json
from nmt.data.corpora.registry import CORPORA, Corpus
from nmt.data.languages import Language
from nmt.errors import DataError
from nmt.recipe import strict_yaml

ANSWER_S = 10.0
"""how long a source may take to answer"""

_LISTED = 100  # data sets of the Hub, those with the most downloads

Pair = tuple[Language, Language]
"""the source and the target language"""


@dataclass(frozen=True)
class Listing:
    """A corpus or a test set for two languages; what its source does not say is None or empty."""

    name: str
    """the value for `data.corpus` and `nmt data download`; for a test set of sacreBLEU, the one
    for `nmt eval-bleu --test-set`"""
    source: str
    """known, OPUS, Hub or sacreBLEU"""
    pairs: int | None = None
    """the number of sentence pairs to train on; without training text, of the test set"""
    size: str = ""
    """in words for people: of the download, or the Hub's class of the number of rows"""
    licence: str = ""
    use: str = ""
    """which sets it has: training, validation, test"""


@functools.cache
def _table() -> dict[str, dict[str, Any]]:
    """Return catalogue.yaml."""
    path = files("nmt.data.corpora") / "catalogue.yaml"
    table: dict[str, dict[str, Any]] = strict_yaml.parse(path.read_text("utf-8"), path.name)[0]
    return table


def known_corpora(pair: Pair) -> list[Listing]:
    """Return the known corpora that have both languages, with their sizes."""
    listings = []
    for corpus in CORPORA.values():
        if _has(corpus, pair):
            sizes = _table()["known"].get(corpus.name, {})
            pairs = sizes.get(_key(pair), sizes.get("any"))  # "any": as many for each two languages
            listings.append(
                Listing(
                    name=corpus.name,
                    source="known",
                    pairs=pairs,
                    size=corpus.download,
                    licence=corpus.licence,
                    use=corpus.use,
                )
            )
    return listings


def ask_sources(pair: Pair) -> tuple[list[Listing], dict[str, str]]:
    """Return what OPUS and the Hub have, and the errors: {name of the source: reason}.

    If OPUS does not answer, the corpora of OPUS in catalogue.yaml take the place of its answer.
    """
    sources: dict[str, Callable[[], Iterable[Listing]]] = {
        "OPUS": lambda: _opus_corpora(pair),
        "the Hugging Face Hub": lambda: _hub_data(pair),
    }
    answers: dict[str, list[Listing] | str] = {}  # a text is the reason why there is none

    def ask(name: str) -> None:
        """Put the answer of a source into `answers`; a thread of its own calls this."""
        try:
            answers[name] = list(sources[name]())
        except DataError as error:
            answers[name] = str(error)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            answers[name] = f"not the answer expected: {type(error).__name__} {error}"

    # daemons: a server that never answers must not keep the program from ending
    threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in sources]
    end = time.monotonic() + ANSWER_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    late = f"no answer within {ANSWER_S:g} seconds"
    listings: list[Listing] = []
    reasons: dict[str, str] = {}
    for name in sources:
        answer = answers.get(name, late)
        if isinstance(answer, str):
            reasons[name] = answer
            answer = _opus_table(pair) if name == "OPUS" else []
        listings += answer
    return listings, reasons


def _key(pair: Pair) -> str:
    """Return the codes of both languages in alphabetical order, as in catalogue.yaml: "de-en"."""
    return "-".join(sorted(language.code for language in pair))


def _has(corpus: Corpus, pair: Pair) -> bool:
    """Return whether a corpus has both languages, in either direction."""
    if corpus.codes:
        return all(language.codes.get(corpus.codes) for language in pair)
    return _key(pair) in ["-".join(sorted(languages)) for languages in corpus.language_pairs]


def _opus_listing(name: str, pairs: int | None, size: str) -> Listing:
    """Return the entry of a corpus of OPUS; its licence and use come from catalogue.yaml."""
    facts = _table()["opus"].get(name, {})
    use = facts.get("use", "training")
    return Listing(f"opus:{name}", "OPUS", pairs, size, facts.get("licence", ""), use)


def _opus_table(pair: Pair) -> list[Listing]:
    """Return the corpora of OPUS that catalogue.yaml lists for two languages.

    There, `languages` can be paired with each other, and `with_english` only with English.
    """
    listings, codes = [], {language.code for language in pair}
    for name, facts in _table()["opus"].items():
        has_both = codes <= set(facts.get("languages", "").split())
        beside_english = set(facts.get("with_english", "").split())
        if has_both or ("en" in codes and codes - {"en"} <= beside_english):
            pair_count = facts.get("pairs", {}).get(_key(pair))
            listings.append(_opus_listing(name, pair_count, size=""))
    return listings


def _opus_corpora(pair: Pair) -> Iterator[Listing]:
    """Yield the newest version of each corpus of OPUS (github.com/Helsinki-NLP/OPUS-API)."""
    source, target = sorted(language.code for language in pair)
    query = {"source": source, "target": target, "preprocessing": "moses", "version": "latest"}
    answer = fetch_json(f"{opus.API}?{urlencode(query)}", ANSWER_S)
    for entry in answer["corpora"]:
        # other files are parts of this one, such as bg-en.strict.txt.zip
        if entry["url"].endswith(f"/{source}-{target}.txt.zip"):
            pairs, kibibytes = (int(entry[key] or 0) for key in ("alignment_pairs", "size"))
            size = tqdm.format_sizeof(kibibytes * 1024, "B") if kibibytes else ""
            yield _opus_listing(entry["corpus"], pairs or None, size)


def _hub_data(pair: Pair) -> Iterator[Listing]:
    """Yield the translation data sets that name both languages and need no permission.

    If a configuration is named by the two languages ("de-en"), the listing names it too.

    Raises:
        DataError: the Hub does not answer.
        KeyError, TypeError, ValueError, AttributeError: the Hub answers something unexpected.
    """
    from huggingface_hub import constants

    tags = ["task_categories:translation", "library:datasets"]
    tags += [f"language:{language.base}" for language in pair]
    query = [*(("filter", tag) for tag in tags), ("gated", "false"), ("sort", "downloads")]
    query += [("limit", str(_LISTED)), ("expand", "tags"), ("expand", "cardData")]
    address = f"{hub.ENDPOINT or constants.ENDPOINT}/api/datasets?{urlencode(query)}"
    for entry in fetch_json(address, ANSWER_S):
        # tags such as "license:mit"; of several with one key, the first counts
        facts = dict(tag.split(":", 1) for tag in reversed(entry["tags"]) if ":" in tag)
        name, upstream_sizes = _configuration(entry.get("cardData") or {}, pair)
        sizes = {  # the number of pairs of each of our splits
            split: upstream_sizes[upstream_name]
            for split, upstream_names in hub.UPSTREAM_SPLITS.items()
            for upstream_name in upstream_names
            if upstream_name in upstream_sizes
        }
        yield Listing(
            name=f"hf:{entry['id']}:{name}" if name else f"hf:{entry['id']}",
            source="Hub",
            pairs=sizes.get("train", sizes.get("test")),
            size=facts.get("size_categories", ""),
            licence=facts.get("license", ""),
            use=", ".join(sizes).replace("train", "training"),
        )


def _configuration(card: Mapping[str, Any], pair: Pair) -> tuple[str, dict[str, int]]:
    """Return the name of the configuration for two languages, and its pairs in each split.

    `card` is the metadata of a data set. Without such a configuration both results are empty.
    """
    infos = card.get("dataset_info") or []
    codes = {language.base for language in pair}
    for info in [infos] if isinstance(infos, dict) else infos:
        name = info.get("config_name") or ""
        if codes <= {*re.split(r"[^a-z]+", name.lower())}:
            splits = info.get("splits") or []
            return name, {split["name"]: split["num_examples"] for split in splits}
    return "", {}
