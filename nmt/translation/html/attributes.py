"""The attributes of HTML tags that a reader sees or hears, and so are translated."""

import re
from html import escape

from nmt.translation.documents.tokens import UNWRITABLE, Token

SPOKEN = ("alt", "aria-description", "aria-label", "label", "placeholder", "title")
"""attributes that hold text in every tag"""
BUTTONS = ("button", "reset", "submit")
"""types of <input> whose value is the text on a button"""
DESCRIPTIONS = ("description", "og:description", "og:title", "twitter:description", "twitter:title")
"""names (or properties) of <meta> whose content is text"""
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


def replace_attribute(token: Token, name: str, value: str) -> None:
    """Write another value of an attribute into the source of a start tag; all else stays."""
    for found in _ATTRIBUTE.finditer(token.source):
        if found["name"].lower() == name and found["value"]:
            start, end = found.span("value")
            quote = "'" if found["value"].startswith("'") else '"'
            escaped = escape(value.translate(UNWRITABLE), quote=False)
            escaped = escaped.replace(quote, "&quot;" if quote == '"' else "&#39;")
            token.source = f"{token.source[:start]}{quote}{escaped}{quote}{token.source[end:]}"
            return
