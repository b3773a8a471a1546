"""HTML in, HTML out: the text of a page is translated, and everything else stays as it is."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import unescape

from nmt.data.text.lines import check_text
from nmt.errors import print_warning
from nmt.translation.document import WINDOW_PARAGRAPHS
from nmt.translation.documents.aligned_words import AlignedText
from nmt.translation.documents.inline_tags import place_tags
from nmt.translation.documents.marked_text import MarkedText
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.html.addresses import is_address
from nmt.translation.html.attributes import replace_attribute, spoken_attributes
from nmt.translation.html.blocks import Elements, find_blocks
from nmt.translation.html.languages import PageLanguages
from nmt.translation.html.source import read_tokens
from nmt.translation.html.text import read_block
from nmt.translation.line import Line, Translation, Warn, has_words
from nmt.translation.pipeline import TranslationRequest
from nmt.translation.spans import Edit, apply_edits, shift_span
from nmt.translation.translator import Translator

TranslateTexts = Callable[[Sequence[Line], bool], Sequence[Translation]]
"""takes texts, each of one or several sentences, and whether links between the words are needed;
returns the translation of each"""


def translate_html(
    html: str, translate: TranslateTexts, languages: PageLanguages | None = None
) -> str:
    """Translate a page, or a part of one: its text, and the attributes that a reader sees.

    All other characters of the source stay. The tags inside a text are placed by the alignment of
    its words, each exactly once. `translate` is called at most twice: for the texts without tags,
    equal ones only once, and for those with tags. With `languages`, elements whose `lang` is
    another language than the source stay as they are, and those of the source get the target's.

    Raises:
        DataError: `html` has half a surrogate pair; or what `translate` raises.
    """
    page = PageTexts(html, languages)
    plain = translate(page.plain, False) if page.plain else []
    return page.write(plain, translate(page.with_tags, True) if page.with_tags else [])


class PageTexts:
    """The texts of a page, or of a part of one, as `translate_html` translates them."""

    def __init__(self, html: str, languages: PageLanguages | None = None) -> None:
        """Find the texts.

        Raises:
            DataError: `html` has half a surrogate pair.
        """
        check_text(html, "the page")
        self._languages = languages
        self._tokens = tokens = read_tokens(html)
        self._elements = Elements(tokens, languages)
        self._blocks = _blocks(tokens, self._elements)
        self._attributes = _attributes(tokens, self._elements)
        blocks = self._blocks.values()
        plain = [block.text for block in blocks if not block.has_tags]
        plain += [value for _, _, value in self._attributes]
        self.plain = [Line(i, text) for i, text in enumerate(dict.fromkeys(plain), start=1)]
        """the texts without tags, equal ones once, and those of attributes"""
        self.with_tags = [
            # the numbers go on, so that each text of the page has its own
            Line(i, block.text, protected=tuple(block.kept))
            for i, block in enumerate((b for b in blocks if b.has_tags), start=len(self.plain) + 1)
        ]
        """the texts with tags, whose translations need links between the words"""

    def write(self, plain: Sequence[Translation], with_tags: Sequence[Translation]) -> str:
        """Return the page with the translations of its texts; call this only once."""
        tokens, elements, languages = self._tokens, self._elements, self._languages
        texts = {line.text: t.text for line, t in zip(self.plain, plain, strict=True)}
        aligned = iter(with_tags)
        for token, name, value in self._attributes:  # changes `tokens`, which are written below
            replace_attribute(token, name, texts[value])
        if languages:
            for token, is_translated in zip(tokens, elements.content_translated, strict=True):
                if token.kind == "start" and is_translated:
                    languages.declare_target(token)
        parts, at = [], 0  # of the new page; the tokens before `at` are in `parts`
        for place, text in self._blocks.items():
            parts.append(source_of(tokens[at : place.start]))
            if text.has_tags:
                parts.append(_with_tags(text, next(aligned)))
            else:
                inside = text.escape(texts[text.text])
                parts.append(source_of(text.before) + inside + source_of(text.after))
            at = place.stop
        return "".join([*parts, source_of(tokens[at:])])


def _blocks(tokens: Sequence[Token], elements: Elements) -> dict[range, MarkedText]:
    """Return the texts of the blocks to translate, by the range of their tokens."""
    blocks: dict[range, MarkedText] = {}
    for block in find_blocks(tokens, elements):
        text = read_block(tokens, elements.partners, block)
        without_kept = apply_edits(text.text, [Edit(span, "") for span in text.kept])
        if has_words(without_kept) and not is_address(without_kept):
            blocks[range(block[0].first, block[-1].end)] = text
    return blocks


def page_text(html: str) -> str:
    """Return the text of a page that is translated, without the markup; attributes are left out."""
    tokens = read_tokens(html)
    is_translated = Elements(tokens).text_translated
    pairs = zip(tokens, is_translated, strict=True)
    return unescape("".join(token.source for token, yes in pairs if yes and token.kind == "text"))


def _attributes(tokens: Sequence[Token], elements: Elements) -> list[tuple[Token, str, str]]:
    """Return the attributes to translate: start tag, name, and value on one line."""
    found = []
    for i, token in enumerate(tokens):
        if token.kind == "start" and elements.attributes_translated[i]:
            for name in spoken_attributes(token):
                value = " ".join((token.attribute(name) or "").split())
                if has_words(value) and not is_address(value):
                    found.append((token, name, value))
    return found


def _with_tags(text: MarkedText, translation: Translation) -> str:
    """Return a translation as HTML, with the tags of the block that it translates."""
    links = translation.alignment.links if translation.alignment else ()
    aligned = AlignedText(text.text, translation.text, links)
    inside = place_tags(aligned, text.tags, text.kept, text.escape)
    return source_of(text.before) + inside + source_of(text.after)


def texts_translator(
    translator: Translator,
    request: TranslationRequest | None = None,
    processes: int = 1,
    tag: str = "",
    warn: Warn = print_warning,
) -> TranslateTexts:
    """Return a function for `translate_html` that translates with a model.

    `request` says how, except that sentences are always split. `tag` asks a model of several
    languages for one, such as `>>fr<< `. `warn` gets a message for each sentence that is too long.
    """

    def translate(lines: Sequence[Line], with_links: bool) -> list[Translation]:
        asked = replace(request or TranslationRequest(), document=True, alignments=with_links)
        tagged_lines = [_add_tag_to_line(line, tag) for line in lines]
        with translator.pipeline(asked, processes) as pipeline:
            rows = pipeline.translate(tagged_lines, WINDOW_PARAGRAPHS, warn)
            return [
                best.without_tag(tag, line.text)
                for (best, *_), line in zip(rows, lines, strict=True)
            ]

    return translate


def _add_tag_to_line(line: Line, tag: str) -> Line:
    """Return a line after a tag such as `>>fr<< `, with its protected spans shifted."""
    protected = tuple(shift_span(span, len(tag)) for span in line.protected)
    return replace(line, text=tag + line.text, protected=protected)
