"""The language and the direction of text in OpenDocument (ISO/IEC 26300)."""

from nmt.translation.documents.tokens import Token
from nmt.translation.documents.writing_systems import WritingSystem
from nmt.translation.documents.xml_tokens import XmlSource, remove_attribute, set_attribute

_ENDS = {"latin": "", "asian": "-asian", "complex": "-complex"}
"""ends of the names of attributes for each kind of scripts"""
_NO_LANGUAGE = ("zxx", "none")
"""text that is of no language, such as that of programs"""
_MODES = {"ltr": "lr-tb", "rtl": "rl-tb"}
_TURNED = {"lr": "rl", "lr-tb": "rl-tb", "rl": "lr", "rl-tb": "lr-tb"}
_WITH_MODE = ("style:page-layout-properties", "style:table-properties")
"""elements that get a direction even if they have none"""
_OTHER_SIDE = {"left": "right", "start": "right", "right": "left", "end": "left"}
"""LibreOffice writes "start" for what is on the left, also in text from right to left"""


def declare_language(source: XmlSource, system: WritingSystem) -> None:
    """Write the language of the translation where one is declared; nothing if it is unknown."""
    if not system.tag:
        return
    end = _ENDS[system.kind]
    for i, token in enumerate(source.tokens):
        if token.name == "dc:language" and source.end(i) == i + 3:
            source.tokens[i + 1].source = system.tag
        elif token.name == "style:text-properties" or token.attribute("fo:language"):
            _declare(token, system, end)


def _declare(token: Token, system: WritingSystem, end: str) -> None:
    """Write the language for one kind of scripts into the properties of a text."""
    prefix = "style" if end else "fo"
    latin = token.attribute("fo:language")
    own = token.attribute(f"{prefix}:language{end}")
    if latin in _NO_LANGUAGE and own in (None, *_NO_LANGUAGE):
        return
    if latin is None and own in (None, *_NO_LANGUAGE):
        return
    set_attribute(token, f"{prefix}:language{end}", system.language, add=True)
    set_attribute(token, f"{prefix}:country{end}", system.country or "none", add=True)
    if system.script:
        set_attribute(token, f"{prefix}:script{end}", system.script, add=True)
    else:
        remove_attribute(token, f"{prefix}:script{end}")
    remove_attribute(token, f"style:rfc-language-tag{end}")
    if token.attribute("style:script-type") not in (None, "ignore"):
        set_attribute(token, "style:script-type", system.kind)


def set_direction(source: XmlSource, system: WritingSystem) -> None:
    """Write the direction of the translation into the styles of a part, if it is another one."""
    if not system.direction:
        return
    mode = _MODES[system.direction]
    in_defaults = False
    for token in source.tokens:
        if token.name == "style:default-style":
            in_defaults = token.kind == "start"
        if token.kind == "end" or not token.name.startswith("style:"):
            continue
        was = token.attribute("style:writing-mode")
        is_default = in_defaults and token.name == "style:paragraph-properties"
        if was in _TURNED and not was.startswith(mode[:2]):
            set_attribute(token, "style:writing-mode", _TURNED[was])
        elif system.direction == "rtl" and (is_default or token.name in _WITH_MODE) and was is None:
            set_attribute(token, "style:writing-mode", mode, add=True)
        elif is_default and was == "page":
            set_attribute(token, "style:writing-mode", mode)
        side = _OTHER_SIDE.get(token.attribute("fo:text-align") or "")
        if side and token.name == "style:paragraph-properties":
            set_attribute(token, "fo:text-align", side)
