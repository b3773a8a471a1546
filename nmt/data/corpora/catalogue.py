"""What text there is for two languages: known corpora, OPUS, and data sets of the Hugging Face Hub.

OPUS and the Hub are asked at the same time, `ANSWER_S` seconds at most. catalogue.yaml has the
sizes of the known corpora and the licences of OPUS. It also lists corpora of OPUS, for use when
OPUS does not answer.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.resources import files
from urllib.parse import urlencode

from tqdm import tqdm

from nmt.data.corpora import opus
from nmt.data.corpora.download import fetch_json
from nmt.data.corpora.hub import find_hub_data
from nmt.data.corpora.listing import Listing, Pair
from nmt.data.corpora.registry import CORPORA, Corpus
from nmt.errors import DataError
from nmt.recipe import strict_yaml

ANSWER_S = 10.0
"""how long a source may take to answer"""

_YAML = files("nmt.data.corpora") / "catalogue.yaml"
_TABLE, _ = strict_yaml.parse(_YAML.read_text("utf-8"), "catalogue.yaml")


def known_corpora(pair: Pair) -> list[Listing]:
    """Return the known corpora that have both languages, with their sizes."""
    listings = []
    for corpus in CORPORA.values():
        if _has(corpus, pair):
            sizes = _TABLE["known"].get(corpus.name, {})
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
        "the Hugging Face Hub": lambda: find_hub_data(pair, ANSWER_S),
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
    facts = _TABLE["opus"].get(name, {})
    use = facts.get("use", "training")
    return Listing(f"opus:{name}", "OPUS", pairs, size, facts.get("licence", ""), use)


def _opus_table(pair: Pair) -> list[Listing]:
    """Return the corpora of OPUS that catalogue.yaml lists for two languages.

    There, `languages` can be paired with each other, and `with_english` only with English.
    """
    listings, codes = [], {language.code for language in pair}
    for name, facts in _TABLE["opus"].items():
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
