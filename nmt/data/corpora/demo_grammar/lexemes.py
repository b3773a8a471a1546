"""What the demo corpus knows of a word: its forms in English and German, read from tables."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Noun:
    """A noun pair; a plural of "" marks a word used in the singular only."""

    english: str
    english_plural: str
    german: str
    gender: str  # m, f or n
    german_plural: str
    weak: str  # accusative and dative singular: "Jungen" for "Junge"
    kind: str


@dataclass(frozen=True)
class Place:
    """A noun one can be at or go to, with the prepositions both languages use there."""

    noun: Noun
    english_at: str
    german_at: str
    german_to: str


@dataclass(frozen=True)
class Verb:
    """A verb pair. German forms run ich, du, er, wir, sie, and leave out a separable prefix."""

    english: str
    english_past: str
    english_ing: str
    particle: str
    infinitive: str
    prefix: str
    participle: str
    auxiliary: str
    present: tuple[str, ...]
    preterite: tuple[str, ...]  # empty where the past is told in the perfect
    objects: tuple[str, ...]


@dataclass(frozen=True)
class Modal:
    """A modal verb pair; an empty English past marks a modal used in the present only."""

    english: str
    english_past: str
    infinitive: str
    present: tuple[str, ...]
    preterite: tuple[str, ...]


@dataclass(frozen=True)
class Adjective:
    """An adjective pair, the kinds of noun it describes, and comparatives ("" for none)."""

    english: str
    german: str
    kinds: tuple[str, ...]
    english_comparative: str
    german_comparative: str


@dataclass(frozen=True)
class Adverbial:
    """A time, frequency, manner or place phrase in both languages."""

    english: str
    german: str


def parse_nouns(kind: str, table: str) -> tuple[Noun, ...]:
    """Rows of "man men Mann m Männer", with a weak form last where there is one."""
    nouns = []
    for row in table.strip().splitlines():
        english, plural, german, gender, german_plural, *weak = row.split()
        plural, german_plural = plural.replace("-", ""), german_plural.replace("-", "")
        nouns.append(
            Noun(english, plural, german, gender, german_plural, (weak or [german])[0], kind)
        )
    return tuple(nouns)


def parse_places(table: str) -> tuple[Place, ...]:
    """Rows of a noun and three prepositions: "park parks Park m Parks | in in in"."""
    places = []
    for row in table.strip().splitlines():
        noun, prepositions = row.split("|")
        english_at, german_at, german_to = prepositions.split()
        places.append(Place(parse_nouns("place", noun)[0], english_at, german_at, german_to))
    return tuple(places)


def _regular_present(infinitive: str) -> tuple[str, ...]:
    stem = infinitive.removesuffix("en")
    bridge = "e" if stem[-1] in "td" or stem.endswith(("ffn", "chn", "gn")) else ""
    du = "t" if stem[-1] in "sßzx" else bridge + "st"
    return (stem + "e", stem + du, stem + bridge + "t", infinitive, infinitive)


def parse_verbs(table: str) -> tuple[Verb, ...]:
    """Rows of "see saw seeing | sehen gesehen siehst sieht | person animal"."""
    verbs = []
    for row in table.strip().splitlines():
        english, german, kinds = (part.split() for part in row.split("|"))
        infinitive, participle, *rest = german
        prefix, _, base = infinitive.rpartition("+")
        auxiliary = "sein" if "sein" in rest else "haben"
        present = _regular_present(base)
        changed = [form for form in rest if form != "sein"]
        if changed:
            present = (present[0], changed[0], changed[1], base, base)
        verbs.append(
            Verb(
                english=english[0],
                english_past=english[1],
                english_ing=english[2],
                particle=" ".join(english[3:]),
                infinitive=base,
                prefix=prefix,
                participle=participle,
                auxiliary=auxiliary,
                present=present,
                preterite=(),
                objects=tuple(kinds),
            )
        )
    return tuple(verbs)


def parse_adjectives(table: str) -> tuple[Adjective, ...]:
    """Rows of "old alt older älter | person animal"; the comparatives are optional."""
    adjectives = []
    for row in table.strip().splitlines():
        words, kinds = row.split("|")
        english, german, *comparative = words.split()
        more, mehr = comparative or ("", "")
        adjectives.append(
            Adjective(english, german, tuple(kinds.split()), more.replace("_", " "), mehr)
        )
    return tuple(adjectives)


def parse_adverbials(table: str) -> tuple[Adverbial, ...]:
    """Rows of "tomorrow | morgen"."""
    rows = (row.split("|") for row in table.strip().splitlines())
    return tuple(Adverbial(english.strip(), german.strip()) for english, german in rows)


def irregular_verb(
    english: str, german: str, present: str, preterite: str, objects: str = ""
) -> Verb:
    """A verb whose present and preterite are given in full, and which has no perfect here."""
    base, past, ing = english.split()
    return Verb(
        english=base,
        english_past=past,
        english_ing=ing,
        particle="",
        infinitive=german,
        prefix="",
        participle="",
        auxiliary="",
        present=tuple(present.split()),
        preterite=tuple(preterite.split()),
        objects=tuple(objects.split()),
    )


def modal(english: str, past: str, german: str, present: str, preterite: str) -> Modal:
    """A modal verb; the forms run ich, du, er, wir, sie."""
    return Modal(english, past, german, tuple(present.split()), tuple(preterite.split()))
