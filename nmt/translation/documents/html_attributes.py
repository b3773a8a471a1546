"""The attributes of HTML tags that are translated, and those that declare a language.

A reader sees or hears the former. The latter say which elements are in the source language, and the
target language once they are translated.
"""

import re
from html import escape

from nmt.data.languages import closest_language, look_up_language
from nmt.translation.documents.document import LanguagePair
from nmt.translation.documents.tokens import UNWRITABLE, Token
from nmt.translation.documents.writing_systems import is_right_to_left

SPOKEN = ("alt", "aria-description", "aria-label", "label", "placeholder", "title")
"""attributes that hold text in every tag"""
BUTTONS = ("button", "reset", "submit")
"""types of <input> whose value is the text on a button"""
DESCRIPTIONS = ("description", "og:description", "og:title", "twitter:description", "twitter:title")
"""names (or properties) of <meta> whose content is text"""
ROOTS = ("html", "body")
"""elements that are the whole page"""
LANGUAGES = ("lang", "xml:lang")
_NO_LANGUAGE = ("mul", "und", "zxx")
"""codes that name no language"""
_ATTRIBUTE = re.compile(
    r"""(?<=[\s/"'])(?P<name>[^\s"'<>/=]+)(?:\s*=\s*(?P<value>"[^"]*"|'[^']*'|[^\s"'>][^\s>]*))?"""
)


def spoken_attributes(token: Token) -> list[str]:
    """Return the names of the attributes of a start tag that are to be translated."""
    names = list(SPOKEN)
    if token.name == "input" and (token.attribute("type") or "").lower() in BUTTONS:
        names.append("value")
    if token.name == "meta":
        described = token.attribute("name") or token.attribute("property") or ""
        if described.lower() in DESCRIPTIONS:
            names.append("content")
    return [name for name in names if token.attribute(name)]  # without missing and empty ones


def attribute_source(token: Token, name: str) -> str | None:
    """Return the value of an attribute as a start tag writes it, without its quotation marks."""
    for found in _ATTRIBUTE.finditer(token.source):
        if name in (found["name"], found["name"].lower()) and found["value"]:
            value: str = found["value"]
            return value[1:-1] if value[0] in "\"'" else value
    return None


def replace_attribute(token: Token, name: str, value: str) -> None:
    """Write another value of an attribute into the source of a start tag; all else stays."""
    for found in _ATTRIBUTE.finditer(token.source):
        if name in (found["name"], found["name"].lower()) and found["value"]:
            start, end = found.span("value")
            quote = "'" if found["value"].startswith("'") else '"'
            escaped = escape(value.translate(UNWRITABLE), quote=False).replace("\n", "&#10;")
            escaped = escaped.replace(quote, "&quot;" if quote == '"' else "&#39;")
            token.source = f"{token.source[:start]}{quote}{escaped}{quote}{token.source[end:]}"
            return


def is_translated(languages: LanguagePair, token: Token) -> bool | None:
    """Return whether the element of a start tag is in the source language, by its `lang`.

    None: it does not say. The whole page is what the user says, whatever it declares.
    """
    code = (token.attribute("lang") or token.attribute("xml:lang") or "").strip()
    declared = look_up_language(code)
    # other values say nothing: "", "english", and X-NONE of Word
    is_code = declared.codes or re.fullmatch("[a-z]{3}", declared.base)
    if token.name in ROOTS or not is_code or declared.base in _NO_LANGUAGE:
        return None
    source = look_up_language(languages.source).base
    return languages.source == "und" or closest_language(declared.base, [source]) is not None


def declare_target(languages: LanguagePair, token: Token) -> None:
    """Write the target language into the start tag of an element that was translated.

    An element without a language stays without one. The direction of a page follows.
    """
    if languages.target == "und":
        return
    is_content_language = (
        token.name == "meta" and (token.attribute("http-equiv") or "").lower() == "content-language"
    )
    target = look_up_language(languages.target)
    for name in (*LANGUAGES, "content") if is_content_language else LANGUAGES:
        if token.attribute(name):
            replace_attribute(token, name, target.tag)
    direction = "rtl" if is_right_to_left(languages.target) else "ltr"
    declared = token.attribute("dir")
    if token.name in ROOTS and (declared or "").lower() in ("ltr", "rtl"):
        replace_attribute(token, "dir", direction)
    elif token.name == "html" and not declared and direction == "rtl":
        token.source = re.sub(r"\s*/?>$", lambda end: f' dir="rtl"{end[0]}', token.source)
