"""Text of a page that is an address, of another page or of mail, and so stays as it is."""

import re
from urllib.parse import unquote

_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,15}://|www\.|mailto:|tel:)\S+|[^\s@]+@[^\W_][\w-]*(?:\.[\w-]+)+",
    re.IGNORECASE,
)


def is_address(text: str) -> bool:
    """Return whether a text is nothing but an address of a page or of mail."""
    return _ADDRESS.fullmatch(text.strip()) is not None


def is_link_to_itself(text: str, href: str) -> bool:
    """Return whether the text of a link is an address: any, or the end of its own one.

    The latter is how example.org, a file report.pdf or the number of a telephone is recognised.
    """
    text, own = text.strip(), unquote(href).lower()
    if is_address(text):
        return True
    if own.startswith(("tel:", "sms:")):
        return not any(map(str.isalpha, text))
    shown = text.rstrip("/.…").lower()
    if not re.fullmatch(r"\S*\w[.@]\w\S*", shown):
        return False
    if text.endswith(("…", "...")):  # it is cut off
        return shown in own
    return f"/{own.rstrip('/')}".endswith((f"/{shown}", f":{shown}", f"www.{shown}"))
