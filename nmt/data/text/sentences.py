"""Splits running text into sentences, and says what stands between two of them.

A full stop ends a sentence unless it belongs to an abbreviation, an initial or an ordinal. After
one that may be both, as in "etc.", the next word decides. The words are in sentences.yaml. Other
marks, those of each script, always end a sentence, but for names such as "Yahoo!", and quotations
that the sentence continues. Thai has no such mark, and its sentences are not split.
"""

import functools
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import regex

from nmt.data.languages import look_up_language
from nmt.recipe import strict_yaml

# the number of characters before and after a mark that the rules look at
_NEAR = 40
_OPENING = r"\p{Ps}\p{Pi}\p{Pf}\"'¿¡\-–—"
_CLOSING = r"\p{Pe}\p{Pi}\p{Pf}\"'"
_SPACE = r"\s\u200b"  # Khmer is written with zero-width spaces
_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}"
_CJK_MARKS = r"。！？｡︒︕︖"
# All that ends a sentence but the above, and but the comma of Burmese, which Unicode lists as well.
_MARKS = rf"[\p{{Sentence_Terminal}}…༎--[{_CJK_MARKS}．၊]]"
_INDIC = r"\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}\p{Oriya}"
# marks that have another meaning outside their script
_OF_A_SCRIPT = rf"""
    :(?<=\p{{Armenian}}[{_CLOSING}]?:)
    | [;\u037e](?<=\p{{Greek}}[{_CLOSING}]?[;\u037e])
    | (?:፡፡|::)(?<=\p{{Ethiopic}}\s?(?:፡፡|::))
    | \|{{1,2}}(?<=[{_INDIC}]\s?\|{{1,2}})
    | །[{_SPACE}]*།
"""
# Where a Japanese sentence goes on: with a particle before another word, and after a quotation with
# any particle. None of these begins a sentence.
_PARTICLE = rf"を|って|と(?!て|こ)|[はがのにもでへや](?=[{_CJK}--\p{{Hiragana}}])"
_AFTER_QUOTATION = (
    r"の(?!ち)|に(?!っこ|や)|は(?!い|じ|っ)|が(?!っ|ん)|も(?!し|う|ち|っ)|で(?!も|は|き)|へ"
    r"|から|まで|など|なんて|だっ|です|でし|なら|より"
)
# Three alternatives: marks that need white space and a capital, digit or the like after them; those
# that a letter may follow at once; and those of Chinese and Japanese, which need no space.
_BOUNDARY = regex.compile(
    rf"""
    (?<!{_MARKS})(?P<mark>{_MARKS}++|{_OF_A_SCRIPT})
    (?P<closing>
        (?:[{_CLOSING}]|[\ \u00a0\u202f]»(?=\s)|\ ?\p{{Emoji_Presentation}})*+
    )
    (?:[{_SPACE}]++(?=
        [{_OPENING}{_SPACE}]*+
        (?:\p{{Lm}}*[\p{{Lu}}\p{{Lt}}\p{{Lo}}\p{{N}}\p{{Sc}}\p{{Georgian}}၎]|\p{{Ll}}\p{{Lu}})
        | ['‘’]\p{{Ll}}{{1,2}}\s\p{{Lu}}  # Afrikaans 'n, Dutch 's
    )|(?<=[।॥፧፨።។៕။][{_CLOSING}]?)(?=[\p{{Lo}}၎]))
    |
    (?<![{_CJK_MARKS}])
    (?P<mark>
        (?:
            [{_CJK_MARKS}]
            | ．(?<=\p{{Hiragana}}．)
            | (?<=[{_CJK}])[!?]+(?=[{_CJK}{_CLOSING}])
        )++
    )
    (?P<closing>[\p{{Pe}}\p{{Pf}}"'{_CJK_MARKS}]{{0,9}}+)
    \s*+(?=[^\s、，])(?!{_PARTICLE})(?!(?<=[」』）”’])(?:{_AFTER_QUOTATION}))
    """,
    regex.VERBOSE | regex.V1,
)
# the rest of a quotation after which its sentence goes on
_QUOTED_REST = regex.compile(rf"[^「」]{{0,{_NEAR}}}」(?:{_PARTICLE}|{_AFTER_QUOTATION})", regex.V1)
_SPACED_QUOTE = regex.compile(r'"\s+')
_NEXT_WORD = regex.compile(
    rf"[{_OPENING}{_SPACE}]*+(?P<word>[\w\p{{M}}]++['’]?)(?P<stop>\.?)", regex.V1
)
_LEADING = regex.compile(rf"^[{_OPENING}]++", regex.V1)
# an initial, or several letters each with its full stop: "J", "J.-J", "U.S", "Ph.D", "डी.एन.ए"
_LETTER = r"\p{L}\p{M}*"
_DOTTED = regex.compile(
    rf"[\p{{Lu}}\p{{Ll}}\p{{Hebrew}}]|(?:(?:{_LETTER}){{1,2}}\.-?)+(?:{_LETTER}){{1,2}}"
)
_ORDINAL = regex.compile(r"\d{1,2}|[IVXL]++")
# a short word, perhaps after others in an open bracket that does not begin the sentence
_IN_BRACKETS = regex.compile(r"\S\s*+\([^()]*\b[\p{Ll}\p{Lo}\p{M}]{1,5}$")
_LAST_PART = regex.compile(r"^.*(?:['’]|\.?-)")
_THAI = regex.compile(r"\p{Thai}")
_REST_OF_BRACKETS = regex.compile(rf"[^()]{{0,{_NEAR}}}\)")
_CJK_LETTER = regex.compile(rf"[{_CJK}]", regex.V1)
_FIRST_LETTER = regex.compile(r"\P{L}*+(\p{L}?)")
_ENDS_FULL_WIDTH = regex.compile(rf"[\u3000-\u303f\uff00-\uffef][{_CLOSING}]*+$")


def split_sentences(text: str, language: str = "") -> list[str]:
    """Return the sentences of a text, stripped of white space; a blank text has none.

    `language` is a code such as "de" or "de-AT". A language without word lists of its own uses
    those of all others.
    """
    rules = _rules(language)
    sentences = []
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        if not rules.continues(text, start, boundary):
            end = _sentence_end(text, start, boundary)
            sentences.append(text[start:end].strip())
            start = end
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _sentence_end(text: str, start: int, boundary: "regex.Match[str]") -> int:
    """Return where a sentence that ends at a boundary ends: before or after a straight quote.

    Such a quotation mark closes a quotation if the sentence, from `start`, has opened one.
    """
    is_open = text.count('"', start, boundary.end("mark")) % 2 == 1
    if is_open and (quote := _SPACED_QUOTE.match(text, boundary.end())):
        return quote.end()
    is_touching = '"' in boundary["closing"] and not text[boundary.end() - 1].isspace()
    return boundary.end("mark") if is_touching and not is_open else boundary.end()


def abbreviations(language: str) -> frozenset[str]:
    """Return words, without their full stop, that never end a sentence; see `split_sentences`."""
    return _rules(language).never_last


def has_ordinals(language: str) -> bool:
    """Return whether a language writes a full stop after an ordinal number, as German does."""
    return _rules(language).ordinals


def space_between(left: str, right: str) -> str:
    """Return what separates two sentences of a text: a space, or nothing in Chinese and Japanese.

    The scripts on both sides decide; after a full-width mark there is never a space.
    """
    if not left or not right or _ENDS_FULL_WIDTH.search(left[-_NEAR:]):
        return ""
    first_letter = _FIRST_LETTER.match(right)
    is_cjk = _CJK_LETTER.search(left[-_NEAR:])
    return "" if is_cjk and first_letter and _CJK_LETTER.match(first_letter[1]) else " "


@dataclass(frozen=True)
class _Rules:
    """The word lists of a language, described in sentences.yaml, that decide about its marks."""

    never_last: frozenset[str]
    """abbreviations that never end a sentence"""
    before_numbers: frozenset[str]
    """abbreviations that do not end it before a number, such as "No." """
    may_be_last: frozenset[str]
    """abbreviations that may end it: the next word decides"""
    endings: tuple[str, ...]
    """the ends of further such abbreviations, as in "Hauptstr." """
    names: tuple[str, ...]
    """names that end in a mark: the next word decides"""
    first_words: frozenset[str]
    """words that usually begin a sentence, with a capital if the script has any"""
    after_quotation: tuple[str, ...]
    """words that continue a sentence after a quotation, such as "said" """
    ordinals: bool
    """whether a number with a full stop may be an ordinal, as in German"""

    def continues(self, text: str, start: int, boundary: "regex.Match[str]") -> bool:
        """Return whether the sentence from `start` continues after a mark.

        `boundary` is the match of `_BOUNDARY` at the mark.
        """
        near = max(start, boundary.start() - _NEAR)
        next_word = _NEXT_WORD.match(text, boundary.end(), boundary.end() + _NEAR)
        following = next_word["word"].replace("’", "'") if next_word else ""
        is_initial = bool(next_word and next_word["stop"]) and len(following) == 1  # "J. A. Smith"
        begins = bool({following, following.rstrip("'")} & self.first_words) and not is_initial
        # "Yahoo! is a company": a name that ends in a mark
        if text.endswith(self.names, near, boundary.end("mark")) and not begins:
            return True
        # "“Stop!” he said": the words after a quotation
        if boundary["closing"] and following.startswith(self.after_quotation):
            return True
        if boundary["mark"] == ".":
            return self._continues_after_full_stop(text, start, boundary, following, begins)
        # 「止まれ！」と言った: a mark inside a quotation that has not ended
        is_quoted = text.rfind("「", near, boundary.start()) > text.rfind(
            "」", near, boundary.start()
        )
        return is_quoted and bool(_QUOTED_REST.match(text, boundary.end()))

    def _continues_after_full_stop(
        self, text: str, start: int, boundary: "regex.Match[str]", following: str, begins: bool
    ) -> bool:
        """Return whether the sentence continues with the word `following`.

        `begins`: that word usually begins a sentence.
        """
        stop = boundary.start("mark")  # index of the full stop
        last_words = text[max(start, stop - _NEAR) : stop].split()[-3:]
        words = [_LEADING.sub("", word) for word in last_words]
        if not words:
            return False
        word = words[-1]
        if _THAI.match(word[-1:]):  # only after abbreviations
            return True
        spellings = {"".join(words[-count:]) for count in (1, 2, 3)}  # "z. B." is "z.B." too
        spellings |= {_LAST_PART.sub("", word)}  # "l'art." has "art.", "Tel.-Nr." has "Nr."
        spellings |= {spelling[:1].lower() + spelling[1:] for spelling in spellings}
        if spellings & self.never_last:
            return True
        if boundary["closing"]:  # a quotation mark or bracket closes here
            return False
        if stop - start < _NEAR and text[start:stop].strip() == word and word.isdecimal():
            return True  # the number of an item of a list
        if spellings & self.before_numbers and following[:1].isdecimal():
            return True
        if _IN_BRACKETS.search(text, max(start, stop - _NEAR), stop):
            return not begins and bool(_REST_OF_BRACKETS.match(text, boundary.end()))
        may_continue = (
            bool(spellings & self.may_be_last)
            or word.lower().endswith(self.endings)
            or bool(_DOTTED.fullmatch(word))
            or (self.ordinals and bool(_ORDINAL.fullmatch(word)))
        )
        return may_continue and not begins


@functools.cache
def _word_lists() -> dict[str, Any]:
    """Return the word lists of all languages: {name of the list: {language: words}}."""
    path = files("nmt.data.text") / "sentences.yaml"
    lists: dict[str, Any] = strict_yaml.parse(path.read_text("utf-8"), path.name)[0]
    return lists


@functools.lru_cache
def _rules(language: str) -> _Rules:
    """Return the rules of a language; one without word lists gets those of all languages."""
    code, lists = look_up_language(language).base, _word_lists()

    def word_list(name: str) -> frozenset[str]:
        words: dict[str, str] = lists[name]
        chosen = words.get(code, "") if code in lists["first_words"] else " ".join(words.values())
        return frozenset(chosen.split())

    return _Rules(
        never_last=word_list("never_last"),
        before_numbers=word_list("before_numbers"),
        may_be_last=word_list("may_be_last"),
        endings=tuple(lists["endings"].get(code, "").split()),
        names=tuple(lists["names"].split()),
        first_words=word_list("first_words"),
        after_quotation=tuple(word_list("after_quotation")),
        ordinals=code in lists["ordinals"].split(),
    )
