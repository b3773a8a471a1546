"""The words of the demo corpus and their forms, read from demo_lexicon.txt."""

from dataclasses import dataclass
from importlib.resources import files

# a phrase or a sentence in English and in German
Pair = tuple[str, str]


@dataclass(frozen=True)
class Determiner:
    """An article or what stands in its place; `declension` is "der", "ein" or "strong"."""

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
    """A noun; an empty plural marks one that has only a singular."""

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
    """A verb: English and German forms, the kinds of its object and what may follow it.

    The German finite forms run ich, du, er, wir, sie and leave out a separable prefix. A verb
    with a preterite tells the past in it, any other verb in the perfect.
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


def _kinds(text: str) -> tuple[str, ...]:
    return tuple(text.replace("people", " ".join(PEOPLE)).split())


def _verb(row: list[str]) -> Verb:
    use, base, third, past, ing, particle, prefix, infinitive, *rest = row
    present, participle, auxiliary, preterite, objects, settings = rest
    return Verb(
        *(use, base, third, past, ing, particle, prefix, infinitive),
        present=tuple(present.split()),
        participle=participle,
        auxiliary=auxiliary,
        preterite=tuple(preterite.split()),
        objects=_kinds(objects),
        settings=tuple(settings.split()),
    )


PEOPLE = ("person", "acquaintance", "sibling", "parent")
MASS_KINDS = ("food", "dish", "drink")
_TABLES = _read_tables()
_DETERMINERS = [Determiner(*row) for row in _TABLES["determiners"]]
THE, THIS, A, NO = _DETERMINERS[:4]
MANY, SOME, BARE = _DETERMINERS[-3:]
PRONOUNS = tuple(
    Phrase(row[0], row[1], row[2], row[3], row[4], int(row[5]), row[6], is_pronoun=True)
    for row in _TABLES["pronouns"]
)
POSSESSIVES = dict(zip(PRONOUNS, _DETERMINERS[4:-3], strict=True))
NOUNS = tuple(Noun(*row) for row in _TABLES["nouns"])
NAMES = tuple(
    Phrase(name, name, name, name, name, 2, gender, is_name=True)
    for gender, names in _TABLES["names"]
    for name in names.split()
)
ADJECTIVES = tuple(
    Adjective(english, german, _kinds(kinds)) for english, german, kinds in _TABLES["adjectives"]
)
VERBS = tuple(map(_verb, _TABLES["verbs"]))
BY_INFINITIVE = {verb.prefix + verb.infinitive: verb for verb in VERBS}
BE, HAVE, WILL = (BY_INFINITIVE[infinitive] for infinitive in ("sein", "haben", "werden"))
CAN, MUST, WANT, SHOULD, MAY, WOULD_LIKE = MODALS = tuple(map(_verb, _TABLES["modals"]))
CIRCUMSTANCES = _TABLES["circumstances"]
PHRASES: dict[str, list[Pair]] = {}
for kind, english, german in _TABLES["phrases"]:
    PHRASES.setdefault(kind, []).append((english, german))
