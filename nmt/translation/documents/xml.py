"""XML of any kind: DocBook, DITA, and what rules of ITS 2.0 or the names of elements describe.

An element is a text of its own, or inside a text, or kept. Each gets the name of an element of HTML
that is the same, so that the texts are found and written as those of pages are.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nmt.errors import DataError, print_warning
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    LanguagePair,
    ReadingOptions,
)
from nmt.translation.documents.html import attribute_segments, page_segments, read_html
from nmt.translation.documents.html_attributes import LANGUAGES
from nmt.translation.documents.html_blocks import Elements
from nmt.translation.documents.its_rules import ITS, Rules, read_rules
from nmt.translation.documents.tokens import Token, TokenKind, source_of
from nmt.translation.documents.xml_tokens import XmlSource, text_of_xml

Kind = Literal["text", "inline", "kept", "untouched", "nested"]
_HTML_NAMES: Mapping[Kind, str] = {
    "text": "div",
    "inline": "span",
    "kept": "code",
    "untouched": "pre",
    "nested": "div",
}
_OPAQUE = "rt"
"""an element of HTML that is a mark inside a text, whatever is in it"""
MOST_LISTED = 8
"""elements that the message about an unknown kind of XML lists"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True)
class Vocabulary:
    """What the elements of a kind of XML are, by their names; all others are texts."""

    inline: frozenset[str] = frozenset()
    """elements inside a text, around words"""
    kept: frozenset[str] = frozenset()
    """elements inside a text whose content is not translated"""
    untouched: frozenset[str] = frozenset()
    """elements whose content is not translated, outside of texts"""
    nested: frozenset[str] = frozenset()
    """elements inside a text whose content is a text of its own, such as a footnote"""
    attributes: frozenset[str] = frozenset()
    """attributes that are texts"""
    texts: frozenset[str] = frozenset()
    """the only elements that are translated; empty: all are"""

    def kind(self, name: str) -> Kind:
        """Return what an element is; if only some are translated, the others are inside these."""
        kinds: Mapping[Kind, frozenset[str]] = {
            "inline": self.inline,
            "kept": self.kept,
            "untouched": self.untouched,
            "nested": self.nested,
        }
        for kind, names in kinds.items():
            if name in names:
                return kind
        return "inline" if self.texts and name not in self.texts else "text"


DOCBOOK = Vocabulary(
    inline=_names("""
        abbrev acronym anchor biblioref citation citerefentry citetitle emphasis firstterm
        foreignphrase glossterm guibutton guiicon guilabel guimenu guimenuitem guisubmenu link
        menuchoice olink orgname personname phrase productname quote subscript superscript
        trademark ulink wordasword xref"""),
    kept=_names("""
        application classname code command computeroutput constant database email envar errorcode
        errorname exceptionname filename function hardware inlineequation interfacename keycap
        keycode keycombo keysym literal markup mathphrase medialabel methodname option package
        parameter productnumber prompt property replaceable returnvalue sgmltag structfield
        structname symbol systemitem tag token type uri userinput varname"""),
    untouched=_names("""
        classsynopsis cmdsynopsis equation funcsynopsis informalequation literallayout
        programlisting programlistingco screen screenco synopsis author authorgroup copyright date
        edition editor isbn issn othercredit pubdate releaseinfo revnumber volumenum"""),
    nested=_names("footnote indexterm inlinemediaobject annotation"),
)
DITA = Vocabulary(
    inline=_names("""
        abbreviated-form b cite i keyword line-through menucascade msgph overline ph q sub sup term
        text tm tt u uicontrol wintitle xref"""),
    kept=_names("""
        apiname cmdname codeph filepath markupname msgnum numcharref option parameterentity parmname
        synph systemoutput textentity userinput varname xmlatt xmlelement xmlnsname xmlpi
        boolean state"""),
    untouched=_names("""
        codeblock data data-about draft-comment equation-block foreign msgblock pre
        required-cleanup screen svg-container syntaxdiagram unknown author created critdates
        othermeta permissions resourceid revised"""),
    nested=_names("fn image indexterm"),
    attributes=_names("navtitle"),
)
_VOCABULARIES = {"docbook": DOCBOOK, "dita": DITA}
"""by a word of the document type, or of a namespace at the beginning"""


def read_xml(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a document of XML by the names of elements, by its rules of ITS, or as what it is known.

    Raises:
        DataError: it is no well-formed XML, or it is not known which of its elements are texts.
    """
    source = XmlSource(content, name, {ITS: "its"})
    root = next(token for token in source.tokens if token.name)
    if root.name == "html":
        return read_html(content, name, options)
    rules = read_rules(source, name)
    vocabulary = _vocabulary(source, rules, name, options)
    kinds = _kinds(source, vocabulary, rules)
    if vocabulary.texts and (outside := _most_text(source, "other")):
        print_warning(f"{name}: text outside of the named elements stays, in characters {outside}")
    attributes = sorted(_attributes(source, vocabulary, rules))
    _name_as_html(source.tokens, kinds, rules)
    root.name = "body"  # whose language is what the user says
    whole = Elements(source.tokens, options.languages, source.partners)
    segments: list[DocumentSegment] = []
    for i, key in attributes:
        if whole.attributes_translated[i]:
            segments += attribute_segments(source.tokens[i], key)
    nested = [i for i, kind in kinds.items() if kind == "nested" and whole.content_translated[i]]
    for start in reversed(nested):  # one inside another comes first
        segments += _nested_segments(source, start, options.languages)
    elements = Elements(source.tokens, options.languages, source.partners)
    segments += page_segments(source.tokens, elements, options.languages)
    return Document(segments, source.encode)


def _nested_segments(
    source: XmlSource, start: int, languages: LanguagePair
) -> list[DocumentSegment]:
    """Return the segments in an element that is a mark, with all that is in it, from now on."""
    first, end = start + 1, source.partners.get(start, start)
    inside = source.tokens[first:end]
    pairs = source.partners.items()
    partners = {i - first: j - first for i, j in pairs if first <= i < end}
    segments = page_segments(inside, Elements(inside, languages, partners), languages)
    for token in inside:
        token.name = token.name and "span"
    source.tokens[start].name = source.tokens[end].name = _OPAQUE
    return segments


def _attributes(
    source: XmlSource, vocabulary: Vocabulary, rules: Rules
) -> Iterator[tuple[int, str]]:
    """Yield (index of a start tag, name of an attribute that is a text)."""
    for i, token in enumerate(source.tokens):
        if token.kind in ("start", "empty"):
            for key, _ in token.attributes:
                if rules.attributes.get((i, key), key in vocabulary.attributes):
                    yield i, key


def _vocabulary(source: XmlSource, rules: Rules, name: str, options: ReadingOptions) -> Vocabulary:
    """Return what the names of the elements say.

    Raises:
        DataError: it is not known, or an element that is asked for is not there.
    """
    given, inline = (frozenset(map(_local, names)) for names in (options.block, options.inline))
    present = {_local(token.name) for token in source.tokens}
    missing = sorted((given | inline) - present)
    if missing:
        raise DataError(f"{name}: has no element <{missing[0]}>; {_known_text(source)}")
    if given or inline:
        return Vocabulary(inline, texts=given)
    beginning = source_of(source.tokens[:MOST_LISTED]).lower()
    for word, vocabulary in _VOCABULARIES.items():
        if word in beginning:
            return vocabulary
    if rules.are_given:
        return Vocabulary()
    root = next(token.name for token in source.tokens if token.name)
    raise DataError(
        f"{name}: is XML with the root <{root}>, of which it is not known what is text; name the "
        "elements that are texts by `block`, and those inside texts by `inline`; "
        f"{_known_text(source)}"
    )


def _known_text(source: XmlSource) -> str:
    """Return the elements that have the most text themselves, as the end of a message."""
    most = _most_text(source, "text")
    return f"the characters of text in its elements are {most}" if most else "no element has text"


def _most_text(source: XmlSource, kind: TokenKind) -> str:
    """Return the elements that have the most text themselves, in tokens of a kind."""
    counts: Counter[str] = Counter()
    opened: list[str] = []
    for token in source.tokens:
        if token.kind == "start":
            opened.append(token.name)
        elif token.kind == "end":
            opened.pop()
        elif token.kind == kind and opened and not token.source.startswith(("<!-", "<?", "<!D")):
            counts[opened[-1]] += len(text_of_xml(token.source).strip())
    most = [f"<{name}> {count:,}" for name, count in counts.most_common(MOST_LISTED) if count]
    return ", ".join(most)


def _local(name: str) -> str:
    """Return a name without its prefix."""
    return name.rpartition(":")[2]


def _kinds(source: XmlSource, vocabulary: Vocabulary, rules: Rules) -> dict[int, Kind]:
    """Return what each element is, by the index of its start tag.

    Where only some elements are texts, what is outside of these is no text from now on.
    """
    kinds: dict[int, Kind] = {}
    end_of_text = 0
    for i, token in enumerate(source.tokens):
        if token.kind in ("start", "empty"):
            local = _local(token.name)
            kinds[i] = rules.kinds.get(i) or vocabulary.kind(local)
            if local in vocabulary.texts:
                end_of_text = max(end_of_text, source.end(i))
        elif token.kind == "text" and vocabulary.texts and i >= end_of_text:
            token.kind = "other"
    return kinds


def _name_as_html(tokens: Sequence[Token], kinds: Mapping[int, Kind], rules: Rules) -> None:
    """Give all tags the names and attributes of HTML for what they are."""
    opened: list[str] = []
    for i, token in enumerate(tokens):
        if token.kind == "end":
            token.name = opened.pop()
        elif i in kinds:
            asked = rules.translated.get(i)
            kept = [each for each in token.attributes if each[0] in (*LANGUAGES, "translate")]
            if token.name.startswith("its:"):
                asked = False
            if asked is not None:
                kept = [("translate", "yes" if asked else "no"), *kept]
            token.attributes = tuple(kept)
            token.name = _HTML_NAMES[kinds[i]]
            if token.kind == "start":
                opened.append(token.name)
