"""Rules of the Internationalization Tag Set 2.0 (ITS) in an XML file: what of it is translated.

Selectors are simple paths: names with /, //, * and @, tests such as [@type='code'], and |. Prefixes
of names are not looked at.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from nmt.errors import DataError
from nmt.translation.documents.tokens import Token
from nmt.translation.documents.xml_tokens import XmlSource

ITS = "http://www.w3.org/2005/11/its"
"""the namespace of the rules, whose elements and attributes have the prefix "its" here"""
_WITHIN: dict[str, Literal["inline", "nested", "text"]] = {
    "yes": "inline",
    "nested": "nested",
    "no": "text",
}
_TEST = r"""\[@[\w:.-]+(?:\s*=\s*(?:"[^"]*"|'[^']*'))?\]"""
_STEP = rf"(?:[\w.-]+:)?(?:[\w.-]+|\*)(?:{_TEST})*"
_PATH = re.compile(rf"(?:/{{1,2}}{_STEP})+(?:/{{1,2}}@(?:[\w:.-]+|\*))?")
_STEPS = re.compile(rf"(//?)(@?)(?:[\w.-]+:)?([\w.-]+|\*)((?:{_TEST})*)")
_ONE_TEST = re.compile(r"""\[@([\w:.-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'))?\]""")
MAX_STEPS = 12
"""steps of a path that are compared with each element"""


@dataclass
class Rules:
    """What the rules of a file say about its elements, by the indices of their start tags."""

    translated: dict[int, bool] = field(default_factory=dict)
    """whether an element and what is in it is translated"""
    attributes: dict[tuple[int, str], bool] = field(default_factory=dict)
    """whether an attribute is translated"""
    kinds: dict[int, Literal["inline", "nested", "text"]] = field(default_factory=dict)
    """whether an element is inside a text, a text inside another one, or a text of its own"""
    are_given: bool = False
    """whether there are any"""


def read_rules(source: XmlSource, name: str) -> Rules:
    """Return what the rules of a file say; later rules override earlier ones.

    Raises:
        DataError: a selector is no simple path, or rules are in another file.
    """
    rules = Rules()
    for token in source.tokens:
        if token.kind == "end" or not token.name.startswith("its:"):
            continue
        rules.are_given |= token.name.endswith("Rule")
        if token.name == "its:rules" and any(k.endswith(":href") for k, _ in token.attributes):
            raise DataError(
                f"{name}: has rules of ITS in another file, which is not read; copy its:rules into "
                "this file"
            )
        if token.attribute("selector"):
            _read_rule(rules, source, token, name)
    for i, token in enumerate(source.tokens):  # what an element says itself comes last
        if token.kind in ("start", "empty"):
            _read_local(rules, i, token)
    return rules


def _read_rule(rules: Rules, source: XmlSource, token: Token, name: str) -> None:
    asked = token.attribute("translate") == "yes"
    kind = _WITHIN.get(token.attribute("withinText") or "")
    for index, attribute in _select(source, token.attribute("selector") or "", name):
        if token.name == "its:translateRule" and attribute:
            rules.attributes[index, attribute] = asked
        elif token.name == "its:translateRule":
            rules.translated[index] = asked
        elif token.name == "its:withinTextRule" and kind and not attribute:
            rules.kinds[index] = kind


def _read_local(rules: Rules, index: int, token: Token) -> None:
    values = {name: value for name, value in token.attributes if name.startswith("its:")}
    if "its:translate" in values:
        rules.translated[index], rules.are_given = values["its:translate"] == "yes", True
    kind = _WITHIN.get(values.get("its:withinText") or "")
    if kind:
        rules.kinds[index], rules.are_given = kind, True


def _select(source: XmlSource, selector: str, name: str) -> Iterator[tuple[int, str]]:
    """Yield (index of a start tag, "" or the name of an attribute of it) for what is selected."""
    for path in re.split(r"\s*\|\s*", selector.strip()):
        steps = _STEPS.findall(path)
        if not _PATH.fullmatch(path) or len(steps) > MAX_STEPS:
            raise DataError(
                f"{name}: has the selector {selector!r} in a rule of ITS, expected a simple path "
                "such as //name, /a/b, //a[@b='c'] or //name/@attribute; write it so"
            )
        attribute = steps.pop()[2] if steps[-1][1] else ""
        # the steps that are matched by the elements around a tag and itself, as a set of positions
        around: list[frozenset[int]] = [frozenset({0})]
        for i, token in enumerate(source.tokens):
            if token.kind == "end":
                around.pop()
            elif token.kind in ("start", "empty"):
                inside = _advance(token, steps, around[-1])
                if len(steps) in inside:
                    yield from ((i, found) for found in _selected(token, attribute))
                if token.kind == "start":
                    # a position stays open for the descendants if "//" follows it
                    kept = {at for at in around[-1] if at < len(steps) and steps[at][0] == "//"}
                    around.append(frozenset(inside | kept))


def _advance(
    token: Token, steps: list[tuple[str, str, str, str]], positions: frozenset[int]
) -> frozenset[int]:
    """Return the numbers of steps that are done once an element is reached."""
    local = token.name.rpartition(":")[2]
    values = dict(token.attributes)
    done = set()
    for at in positions:
        if at == len(steps):
            continue
        _, _, expected, tests = steps[at]
        matches = expected in ("*", local)
        for key, one, other in _ONE_TEST.findall(tests):
            value = values.get(key)
            matches &= value is not None and value == (one or other or value)
        if matches:
            done.add(at + 1)
    return frozenset(done)


def _selected(token: Token, attribute: str) -> list[str]:
    """Return the attributes of an element that a name or * selects; the element itself: [""]."""
    if not attribute:
        return [""]
    return [name for name, _ in token.attributes if attribute in ("*", name.rpartition(":")[2])]
