"""Finds the blocks of an HTML page: the stretches of text and inline tags that are one text.

A paragraph, a heading or a cell is a block. Two line breaks in a row separate blocks, too. What is
not to be translated is in no block, or, inside a sentence, a part of a block that is kept.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import accumulate
from typing import Literal

from nmt.translation.documents.addresses import is_link_to_itself
from nmt.translation.documents.document import ANY_LANGUAGE, LanguagePair
from nmt.translation.documents.html_attributes import is_translated
from nmt.translation.documents.tokens import Token


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SEPARATING = _names("""
    address article aside blockquote body caption center col colgroup dd details dialog dir div dl
    dt fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html
    legend li main menu nav noscript ol optgroup option p plaintext pre search section select
    summary table tbody td template tfoot th thead title tr ul xmp""")
"""elements that separate blocks; all others, unknown ones too, are inline, as in browsers"""
VOID = _names("area base br col embed frame hr img input link meta param source track wbr")
"""elements without an end tag"""
FOREIGN = _names("math svg")
"""elements without content if they are written as <svg/>; of others HTML ignores the slash"""
KEPT = _names("code kbd math samp var")
"""elements that are a part of their sentence, but whose content is not translated"""
UNTOUCHED = KEPT | _names("plaintext pre rp rt script style svg textarea xmp")
"""elements whose content is not translated; <rt> says how a word of the source is pronounced"""
MAX_LINK_TOKENS = 20
"""tokens of a link whose text may be an address"""
_CELLS = _names("td th")
_CLOSED_BY = {
    "li": _names("li"),
    "dt": _names("dt dd"),
    "dd": _names("dt dd"),
    "option": _names("option"),
    "rp": _names("rp rt"),
    "rt": _names("rp rt"),
    "td": _CELLS,
    "th": _CELLS,
    "tr": _CELLS | {"tr"},
}
"""the open elements that end where another one begins; a paragraph ends at all that separate"""


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a block: some tokens that belong together."""

    kind: Literal["text", "open", "close", "tag", "kept"]
    """a text, the start tag or the end tag of an element, another tag or a comment, or an element
    that is kept as it is and has text inside"""
    first: int
    """the index of its first token"""
    end: int
    """the index after its last token"""


Block = list[Item]
"""items whose tokens follow each other without a gap"""


class Elements:
    """The elements of a page: where each one ends, and which are translated."""

    def __init__(
        self,
        tokens: Sequence[Token],
        languages: LanguagePair = ANY_LANGUAGE,
        partners: Mapping[int, int] | None = None,
    ) -> None:
        """Find the elements; those of another language than the source are not translated.

        `partners` has the end tag of each start tag of XHTML, and the other way round.
        """
        self._tokens, self._languages = tokens, languages
        self.ends: dict[int, int] = {}
        """for each start tag with content: the index of the end tag, or of the token before which
        the element ends without one"""
        self.partners: dict[int, int] = {}
        """for each start tag with an end tag that one, and the other way round"""
        if partners is None:
            self._find_ends()
        else:
            self.partners = dict(partners)
            self.ends = {start: end for start, end in partners.items() if start < end}
        self.attributes_translated = [True] * len(tokens)
        """whether the attributes of each start tag are translated"""
        self.text_translated = [True] * len(tokens)
        """whether each token is in an element whose text is translated"""
        self.content_translated = [True] * len(tokens)
        """whether the content of the element of each start tag is translated"""
        self._find_translated()
        separating = (token.name in SEPARATING for token in tokens)
        self._separating_before = list(accumulate(separating, initial=0))
        """how many tags before each token separate blocks; the last entry: in the whole page"""
        spoken = (token.kind == "text" and not token.source.isspace() for token in tokens)
        self._spoken_before = list(accumulate(spoken, initial=0))
        """how many tokens before each one are text"""

    def separates(self, start: int) -> bool:
        """Return whether the element of a start tag separates blocks, or contains one that does."""
        end = self.ends.get(start, start + 1)  # a tag without content is looked at alone
        return self._separating_before[end] > self._separating_before[start]

    def has_text(self, start: int) -> bool:
        """Return whether the element of a start tag has text."""
        return self._spoken_before[self.ends[start]] > self._spoken_before[start]

    def _find_ends(self) -> None:
        """Fill `ends` and `partners`; HTML lets some elements end without an end tag."""
        tokens = self._tokens
        open_tags: list[int] = []
        open_names: Counter[str] = Counter()

        def close_last(end: int) -> None:
            start = open_tags.pop()
            open_names[tokens[start].name] -= 1
            self.ends[start] = end

        for i, token in enumerate(tokens):
            if token.kind == "start":
                while open_tags and _ends_at(tokens[open_tags[-1]].name, token.name):
                    close_last(i)
                is_closed = token.name in FOREIGN and token.source.endswith("/>")
                if token.name not in VOID and not is_closed:
                    open_tags.append(i)
                    open_names[token.name] += 1
            elif token.kind == "end" and open_names[token.name]:
                while tokens[start := open_tags[-1]].name != token.name:
                    close_last(i)
                close_last(i)
                self.partners[start], self.partners[i] = i, start
        while open_tags:
            close_last(len(tokens))

    def _find_translated(self) -> None:
        """Fill the three lists that say which attributes, texts and contents are translated."""
        # (end, whether it is to be translated, whether it is in the source language) of each
        open_elements = [(len(self._tokens), True, True)]
        for i, token in enumerate(self._tokens):
            while open_elements[-1][0] <= i:
                open_elements.pop()
            _, wanted, spoken = open_elements[-1]
            self.text_translated[i] = wanted and spoken
            if token.kind in ("start", "empty"):
                wanted = _asked_to_translate(token, wanted)
                declared = is_translated(self._languages, token)
                spoken = spoken if declared is None else declared
                self.attributes_translated[i] = wanted and spoken
                wanted = wanted and token.name not in UNTOUCHED and not self._is_address(i)
                self.content_translated[i] = wanted and spoken
                if i in self.ends:
                    open_elements.append((self.ends[i], wanted, spoken))

    def _is_address(self, start: int) -> bool:
        """Return whether an element is a link whose text is an address."""
        token, end = self._tokens[start], self.ends.get(start, start)
        if token.name != "a" or end - start > MAX_LINK_TOKENS:
            return False
        inside = self._tokens[start:end]
        text = "".join(each.source for each in inside if each.kind == "text")
        return is_link_to_itself(unescape(text), token.attribute("href") or "")


def _ends_at(open_name: str, name: str) -> bool:
    """Return whether an open element ends where the start tag of another one is."""
    if open_name == "p":
        return name in SEPARATING
    return open_name in _CLOSED_BY.get(name, ())


def _asked_to_translate(token: Token, outside: bool) -> bool:
    """Return whether the attributes of a start tag ask for a translation, or do not say."""
    if "translate" in dict(token.attributes):
        asked = (token.attribute("translate") or "").strip().lower()
        return {"": True, "yes": True, "no": False}.get(asked, outside)
    return outside and "notranslate" not in (token.attribute("class") or "").split()


def find_blocks(tokens: Sequence[Token], elements: Elements) -> Iterator[Block]:
    """Yield the blocks of a page that have text."""
    block: Block = []
    depth = 0  # open elements of the block
    i = 0
    while i < len(tokens):
        item = _item(tokens, elements, i)
        if not item or (depth == 0 and _is_second_break(tokens, block, item)):
            if any(part.kind == "text" for part in block):
                yield block
            block = []
        if item:
            block.append(item)
            if item.kind == "open":
                depth += 1
            elif item.kind == "close":
                depth -= 1
        i = item.end if item else i + 1
    if any(part.kind == "text" for part in block):
        yield block


def _item(tokens: Sequence[Token], elements: Elements, i: int) -> Item | None:
    """Return the item that begins with token i; None if the token separates blocks."""
    token = tokens[i]
    start = elements.partners.get(i, i) if token.kind == "end" else i
    if not elements.text_translated[i] or elements.separates(start):
        return None
    if token.kind == "text":
        return Item("text", i, i + 1)
    if token.kind == "start" and not elements.content_translated[i] and i in elements.ends:
        is_kept = elements.has_text(i) and (token.name in KEPT or token.name not in UNTOUCHED)
        end = elements.ends[i] + (i in elements.partners)
        return Item("kept" if is_kept else "tag", i, end)
    if i not in elements.partners:
        return Item("tag", i, i + 1)
    return Item("open" if token.kind == "start" else "close", i, i + 1)


def _is_second_break(tokens: Sequence[Token], block: Block, item: Item) -> bool:
    """Return whether an item is a line break, and another one stands before it without text."""
    if tokens[item.first].name != "br":
        return False
    for before in reversed(block):
        token = tokens[before.first]
        if token.kind not in ("text", "other") or (token.kind == "text" and token.source.strip()):
            return token.name == "br"
    return False
