"""The language and the direction of text in Word, PowerPoint and Excel (ECMA-376)."""

import re
from collections.abc import Iterator

from nmt.translation.documents.office_runs import element_names
from nmt.translation.documents.tokens import Token
from nmt.translation.documents.writing_systems import WritingSystem
from nmt.translation.documents.xml_tokens import XmlSource, set_attribute

_LANGUAGES_OF_WORD = {"latin": "val", "asian": "eastAsia", "complex": "bidi"}
"""the attribute of `w:lang` for each kind of scripts"""
_NO_LANGUAGE = ("x-none", "zxx")
"""text that is of no language, such as that of programs"""
_AFTER_BIDI = element_names(
    """
    adjustRightInd snapToGrid spacing ind contextualSpacing mirrorIndents suppressOverlap jc
    textDirection textAlignment textboxTightWrap outlineLvl divId cnfStyle rPr sectPr pPrChange
    rtlGutter docGrid printerSettings sectPrChange""",
    "w:",
)
"""what follows `w:bidi` in the properties of a paragraph or a section"""
_BEFORE_BIDI_VISUAL = ("w:tblStyle", "w:tblpPr", "w:tblOverlap")
_COMPLEX_LOOKS = {"w:b": "w:bCs", "w:i": "w:iCs", "w:sz": "w:szCs"}
"""the look of a run, and what it is called for text of complex scripts"""
_MARKS_OF_DIRECTION = ("w:bidi", "w:bidiVisual", "w:rtl")
_PARAGRAPH_LOOKS = re.compile(r"a:(?:pPr|lvl\dpPr|defPPr)")
_OTHER_SIDE = {"l": "r", "r": "l"}


def declare_language(source: XmlSource, system: WritingSystem) -> None:
    """Write the language of the translation where one is declared; nothing if it is unknown."""
    for i, token in enumerate(source.tokens if system.tag else ()):
        if token.name in ("w:lang", "w:themeFontLang"):
            _declare_in_word(token, system)
        elif token.name.startswith("a:"):
            for key in ("lang", "altLang"):
                if token.attribute(key) and token.attribute(key) not in _NO_LANGUAGE:
                    set_attribute(token, key, system.tag)
        elif token.name == "dc:language" and source.end(i) == i + 3:
            source.tokens[i + 1].source = system.tag


def _declare_in_word(token: Token, system: WritingSystem) -> None:
    key = _LANGUAGES_OF_WORD[system.kind]
    declared = {name.rpartition(":")[2]: value for name, value in token.attributes}
    if declared.get(key) not in _NO_LANGUAGE and declared.get("val") not in _NO_LANGUAGE:
        set_attribute(token, _prefix(token) + key, system.tag, add=True)


def set_direction(source: XmlSource, system: WritingSystem) -> None:
    """Write the direction of the translation into the sources of a part, if it is another one."""
    if not system.direction:
        return
    is_right_to_left = system.direction == "rtl"
    for i, token in enumerate(source.tokens):
        if token.kind == "end" or not token.source:
            continue
        if token.name.startswith("w:"):
            _turn_word(source, i, is_right_to_left)
        elif token.name.startswith("a:"):
            _turn_drawing(source, i, is_right_to_left)
        else:
            _turn_sheet(token, is_right_to_left)


def _turn_word(source: XmlSource, at: int, is_right_to_left: bool) -> None:
    """Set the direction of the paragraph, run, table or section of a tag."""
    token = source.tokens[at]
    if is_right_to_left:
        _turn_to_left(source, at)
    elif token.name in _MARKS_OF_DIRECTION and _is_on(token):
        token.source = ""
    if token.name == "w:rPr" and token.kind == "start":
        _copy_looks(source, at, is_right_to_left)


def _turn_to_left(source: XmlSource, at: int) -> None:
    """Make the paragraph, run, table or section of a tag one from right to left."""
    token = source.tokens[at]
    prefix = _prefix(token)
    if token.kind == "start" and token.name == "w:p":
        first = _first_child(source, at)
        if first is None or source.tokens[first].name != "w:pPr":
            token.source += f"<{prefix}pPr><{prefix}bidi/></{prefix}pPr>"
    elif token.kind == "start" and token.name == "w:r":
        first = _first_child(source, at)
        if first is None or source.tokens[first].name != "w:rPr":
            token.source += f"<{prefix}rPr><{prefix}rtl/></{prefix}rPr>"
        else:
            _add_child(source, first, "rtl", frozenset({"w:rPrChange"}))
    elif token.name == "w:sectPr" or (token.name == "w:pPr" and _is_of_paragraph(source, at)):
        _add_child(source, at, "bidi", _AFTER_BIDI)
    elif token.name == "w:tblPr" and token.kind == "start":
        names = {source.tokens[i].name for i in _children(source, at)}
        _add_child(source, at, "bidiVisual", frozenset(names.difference(_BEFORE_BIDI_VISUAL)))


def _is_of_paragraph(source: XmlSource, at: int) -> bool:
    """Return whether properties are those of a paragraph of text, not of a style."""
    before = at - 1
    while before > 0 and source.tokens[before].kind == "text":
        before -= 1
    return source.tokens[before].name == "w:p"


def _add_child(source: XmlSource, at: int, name: str, followers: frozenset[str]) -> None:
    """Add an empty element to one of Word's, before its first child that is one of `followers`."""
    token = source.tokens[at]
    prefix = _prefix(token)
    added = f"<{prefix}{name}/>"
    if token.kind == "empty":
        opened = re.sub(r"\s*/>$", ">", token.source)
        token.source = f"{opened}{added}</{prefix}{token.name.rpartition(':')[2]}>"
        return
    children = list(_children(source, at))
    for i in children:
        child = source.tokens[i]
        if child.name == f"w:{name}":
            for each in source.tokens[i : source.end(i)]:
                each.source = ""
    place = next((i for i in children if source.tokens[i].name in followers), None)
    where = source.tokens[source.partners[at] if place is None else place]
    where.source = added + where.source


def _copy_looks(source: XmlSource, at: int, to_complex: bool) -> None:
    """Give text of the other direction the weight, slope and size of this one, where it has none.

    In text from right to left Word reads only those for complex scripts.
    """
    children = {source.tokens[i].name: source.tokens[i] for i in _children(source, at)}
    for latin, complex_script in _COMPLEX_LOOKS.items():
        has, lacks = (latin, complex_script) if to_complex else (complex_script, latin)
        if has in children and lacks not in children:
            token = children[has]
            own = _prefix(token) + has.rpartition(":")[2]
            other = _prefix(token) + lacks.rpartition(":")[2]
            token.source += re.sub(rf"^<{re.escape(own)}\b", f"<{other}", token.source)


def _turn_drawing(source: XmlSource, at: int, is_right_to_left: bool) -> None:
    """Set the direction of a paragraph or a table of a drawing."""
    token = source.tokens[at]
    was = token.attribute("rtl") in ("1", "true")
    if token.name == "a:p" and token.kind == "start" and is_right_to_left:
        first = _first_child(source, at)
        if first is None or source.tokens[first].name != "a:pPr":
            token.source += f'<{_prefix(token)}pPr rtl="1"/>'
    elif token.name == "a:tblPr" and (was or is_right_to_left):
        set_attribute(token, "rtl", str(int(is_right_to_left)), add=True)
    elif _PARAGRAPH_LOOKS.fullmatch(token.name) and was != is_right_to_left:
        set_attribute(token, "rtl", str(int(is_right_to_left)), add=True)
        side = _OTHER_SIDE.get(token.attribute("algn") or "")
        if side:
            set_attribute(token, "algn", side)


def _turn_sheet(token: Token, is_right_to_left: bool) -> None:
    """Set the direction of a sheet, or of a format of cells that has one."""
    if token.name == "sheetView":
        is_set = token.attribute("rightToLeft") is not None
        if is_right_to_left or is_set:
            set_attribute(token, "rightToLeft", str(int(is_right_to_left)), add=True)
    elif token.name == "alignment" and token.attribute("readingOrder") in ("1", "2"):
        set_attribute(token, "readingOrder", "2" if is_right_to_left else "1")


def _children(source: XmlSource, at: int) -> Iterator[int]:
    """Yield the indices of the tags directly inside an element."""
    i, end = at + 1, source.partners.get(at, at)
    while i < end:
        if source.tokens[i].name:
            yield i
        i = source.end(i)


def _first_child(source: XmlSource, at: int) -> int | None:
    return next(_children(source, at), None)


def _prefix(token: Token) -> str:
    """Return the prefix of Word's elements or of drawings in this document, with its colon."""
    name = token.source.lstrip("<").partition(">")[0].split()[0]
    prefix, colon, _ = name.rpartition(":")
    return prefix + colon


def _is_on(token: Token) -> bool:
    """Return whether an element of Word that is on or off is on."""
    values = [value for name, value in token.attributes if name.endswith("val")]
    return not set(values).intersection(("0", "false", "off"))
