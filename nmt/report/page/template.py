"""Fills the template of the page: HTML, style and script in one file that needs no network."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from nmt.report.page.configuration import flatten_settings
from nmt.report.page.translations import mark_shared_words

FOLDER = Path(__file__).with_name("templates")


def render(template: str, values: Mapping[str, Any]) -> str:
    """Fill a template of `FOLDER`; text among the values is escaped, so it never becomes markup.

    Characters that an HTML file must not contain, NUL and lone surrogates, are replaced.
    """
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.globals["asset"] = read_asset
    environment.filters |= {
        "breakable": breakable,
        "mark_words": mark_shared_words,
        "settings": flatten_settings,
    }
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    text = environment.get_template(template).render(values)
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def read_asset(name: str) -> Markup:
    """Read the style or the script; neither contains its own end tag."""
    return Markup((FOLDER / name).read_text("utf-8"))


def breakable(name: str) -> Markup:
    """Allow a line break after each dot and underscore of a name."""
    return Markup("<wbr>").join(re.split(r"(?<=[._])", name))
