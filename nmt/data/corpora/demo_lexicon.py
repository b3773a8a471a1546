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
    infinitive: str
    present: tuple[str, ...]
    preterite: tuple[str, ...] = ()
    particle: str = ""
    prefix: str = ""
    participle: str = ""
    auxiliary: str = ""
    objects: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


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


def _noun(kind: str, english: str, german: str) -> Noun:
    words, (base, gender, *others) = english.split(), german.split()
    plural, *oblique = others or [""]
    forms = (kind, words[0], "".join(words[1:]), base, gender, plural)
    return Noun(*forms, (oblique or [base])[0])


def _kinds(text: str) -> tuple[str, ...]:
    return tuple(text.replace("people", " ".join(PEOPLE)).split())


def _present(infinitive: str, changed: list[str]) -> tuple[str, ...]:
    """Return ich, du, er, wir, sie; `changed` are the forms of du and er that are irregular."""
    stem = infinitive.removesuffix("en")
    bridge = "e" if stem[-1] in "td" or stem.endswith(("ffn", "chn", "gn")) else ""
    second = "t" if stem[-1] in "sßzx" else bridge + "st"
    changed = changed or [stem + second, stem + bridge + "t"]
    return (stem + "e", *changed, infinitive, infinitive)


def _verb(use: str, english: str, german: str, objects: str, settings: str = "") -> Verb:
    base, third, past, ing, *particle = english.split()
    infinitive, participle, *forms = german.split()
    prefix, _, infinitive = infinitive.rpartition("+")
    return Verb(
        *(use, base, third, past, ing, infinitive),
        present=_present(infinitive, [form for form in forms if form != "sein"]),
        particle=" ".join(particle),
        prefix=prefix,
        participle=participle,
        auxiliary="sein" if "sein" in forms else "haben",
        objects=_kinds(objects),
        settings=tuple(settings.split()),
    )


def _irregular_verb(row: list[str]) -> Verb:
    use, base, third, past, ing, infinitive, present, preterite, kinds = row
    forms = tuple(present.split()), tuple(preterite.split())
    return Verb(use, base, third, past, ing, infinitive, *forms, objects=_kinds(kinds))


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
NOUNS = tuple(_noun(*row) for row in _TABLES["nouns"])
NAMES = tuple(
    Phrase(name, name, name, name, name, 2, gender, is_name=True)
    for gender, names in _TABLES["names"]
    for name in names.split()
)
ADJECTIVES = tuple(
    Adjective(english, german, _kinds(kinds)) for english, german, kinds in _TABLES["adjectives"]
)
IRREGULAR = {row[5]: _irregular_verb(row) for row in _TABLES["irregular"]}
BE, HAVE, WILL = (IRREGULAR[infinitive] for infinitive in ("sein", "haben", "werden"))
VERBS = (*(_verb(*row) for row in _TABLES["verbs"]), *IRREGULAR.values())
CAN, MUST, WANT, SHOULD, MAY, WOULD_LIKE = MODALS = tuple(map(_irregular_verb, _TABLES["modals"]))
CIRCUMSTANCES = _TABLES["circumstances"]
PHRASES: dict[str, list[Pair]] = {}
for kind, english, german in _TABLES["phrases"]:
    PHRASES.setdefault(kind, []).append((english, german))
