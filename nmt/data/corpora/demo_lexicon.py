"""The words of the demo corpus and their forms, read from demo_lexicon.txt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, TypeVar, get_type_hints

Entry = TypeVar("Entry")
# a phrase or a sentence: (English, German)
Pair = tuple[str, str]


@dataclass(frozen=True)
class Determiner:
    """A word before a noun; adjectives after it have its `declension`: "der", "ein" or "strong"."""

    english: str
    english_plural: str
    german: str
    declension: str


@dataclass(frozen=True)
class Phrase:
    """A subject or an object, in every case.

    `person` is the column of a verb's forms (ich, du, er, wir, sie); `gender` is m, f, n or p
    (plural). `negative` is the accusative with "kein", or "" where "nicht" negates. An indefinite
    phrase stands late in a German clause, a name early.
    """

    english: str
    english_object: str
    nominative: str
    accusative: str
    dative: str
    person: int
    gender: str
    negative: str = ""
    indefinite: bool = False
    is_name: bool = False
    is_pronoun: bool = False


@dataclass(frozen=True)
class Noun:
    """A noun; the plural may be empty. `oblique` is its accusative and dative singular."""

    kind: str
    english: str
    english_plural: str
    german: str
    gender: str
    german_plural: str
    oblique: str


@dataclass(frozen=True)
class Adjective:
    """An adjective and the kinds of noun that it describes."""

    english: str
    german: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Verb:
    """A verb: its forms, the kinds of its object, and the kinds of phrases that may follow it.

    The German finite forms are those of ich, du, er, wir, sie, without a separable prefix. The
    past of a verb is the preterite, or the perfect if `preterite` is empty.
    """

    use: str
    english: str
    english_third: str
    english_past: str
    english_ing: str
    particle: str
    prefix: str
    infinitive: str
    present: tuple[str, ...]
    participle: str
    auxiliary: str
    preterite: tuple[str, ...]
    objects: tuple[str, ...]
    settings: tuple[str, ...]


def _read_tables() -> dict[str, list[list[str]]]:
    """Return the rows of every table, each split at its bars; "-" is an empty cell."""
    tables: dict[str, list[list[str]]] = {}
    text = (files("nmt.data.corpora") / "demo_lexicon.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith("["):
            rows = tables.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            rows.append([cell.strip(" -") for cell in line.split("|")])
    return tables


def _entries(kind: type[Entry], table: str) -> tuple[Entry, ...]:
    """Return the rows of a table as objects of the dataclass `kind`, a cell for each field.

    A field that is a tuple takes the words of its cell.
    """
    types = get_type_hints(kind).values()

    def value(cell: str, field_type: Any) -> Any:
        return field_type(cell) if field_type in (str, int) else tuple(cell.split())

    return tuple(kind(*map(value, row, types)) for row in _TABLES[table])


PEOPLE = ("person", "acquaintance", "sibling", "parent")
MASS_KINDS = ("food", "dish", "drink")
_TABLES = _read_tables()
_DETERMINERS = _entries(Determiner, "determiners")
THE, THIS, A, NO = _DETERMINERS[:4]
MANY, SOME, BARE = _DETERMINERS[-3:]
PRONOUNS = tuple(replace(p, is_pronoun=True) for p in _entries(Phrase, "pronouns"))
IT = Phrase("it", "it", "es", "es", "ihm", 2, "n")
WHO = Phrase("who", "who", "wer", "wen", "wem", 2, "m")
POSSESSIVES = dict(zip(PRONOUNS, _DETERMINERS[4:-3], strict=True))
NOUNS = _entries(Noun, "nouns")
NAMES = tuple(
    Phrase(name, name, name, name, name, 2, gender, is_name=True)
    for gender, names in _TABLES["names"]
    for name in names.split()
)
ADJECTIVES = _entries(Adjective, "adjectives")
VERBS = _entries(Verb, "verbs")
EVENTS, STATES, REPORTS = (
    [verb for verb in VERBS if verb.use == use] for use in ("event", "state", "report")
)
WILLED = [verb for verb in EVENTS if "unwilled" not in verb.settings]
BY_INFINITIVE = {verb.prefix + verb.infinitive: verb for verb in VERBS}
BE, HAVE, WILL = (BY_INFINITIVE[infinitive] for infinitive in ("sein", "haben", "werden"))
CAN, MUST, WANT, SHOULD, MAY, WOULD_LIKE = MODALS = _entries(Verb, "modals")
CIRCUMSTANCES = _TABLES["circumstances"]
PHRASES: dict[str, list[Pair]] = {}
for kind, english, german in _TABLES["phrases"]:
    PHRASES.setdefault(kind, []).append((english, german))


def nouns_of(kinds: Sequence[str]) -> list[Noun]:
    """Return the nouns of any of `kinds`; KIND:ENGLISH, such as "object:key", is one noun."""
    return [n for n in NOUNS if n.kind in kinds or f"{n.kind}:{n.english}" in kinds]
