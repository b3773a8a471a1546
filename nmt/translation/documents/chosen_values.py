"""Which values of a file are translated: those of the keys asked for, or those that are texts.

Files of data and of strings have texts beside addresses, names and codes of the program. A value
stays if it is surely none of a language; what is not sure is translated.
"""

import difflib
import functools
import itertools
import re
from collections.abc import Iterable, Sequence

from nmt.errors import print_warning
from nmt.translation.documents.data_values import DataValue
from nmt.translation.documents.document import ReadingOptions

_NO_TEXT = re.compile(
    r"""
    [a-zA-Z][\w+.-]*://\S* | (?:www\.|(?:mailto|tel|data|urn|javascript):)\S+  # addresses
    | [^\s@]+@[^\s@]+\.[^\s@]+                                # of mail
    | (?:\.{0,2}|~)/\S* | \.{0,2}\\\S+ | [A-Za-z]:\\.*        # /a, ./a, ../a, ~/a, C:\a
    | (?:application|audio|font|image|message|model|multipart|text|video)/[\w.+-]+(?:;.*)?
    | (?=[\w$./:-]+\Z).*_[A-Za-z\d].*                         # btn_ok, MAX_SIZE, _blank
    | [a-z]+\d*[A-Z]\w*                                       # btnOk
    | [\w$@-]+(?:[./\\][\w$@-]+)*\.[\w$@-]+                   # logo.png, img/a.svg, app.title
    | [$:@.][A-Za-z_][\w.:-]*                                 # $name, :name, @name, .name
    | (?=\D*\d)(?!(?:[^-]*-)*[A-Za-z]{4,}(?:-|\Z))[\w.:+#/-]+  # v1.2, utf8, not 24h-Service
    | [\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12} | (?=\D*\d)[\w+/=-]{32,}  # UUIDs, hashes, base64
    | true | false | \#[\da-fA-F]{3,8} | (?:rgb|hsl)a?\([^()]*\)             # colours
    | [a-z]{2,3}(?:[-_](?:[A-Z][a-z]{3}|[A-Z]{2}))+           # en-US
    | (?=.*?([yMdHhmsSE])\1)([yMdHhmsSEaAzZ])\2*(?:[ .,:/'T-]+([yMdHhmsSEaAzZ])\3*)*  # d MMM yyyy
    | (?:[\d\s.,:/'()-]*%[-^0]?[A-Za-z])+[\d\s.,:/'()-]*           # %d. %B %Y
    """,
    re.VERBOSE | re.ASCII,
)
_KEY_OF_CODES = re.compile(
    r"(?:.*\.)?(?:\$ref|class|className|href|icon|id|key|kind|lang|language|layout|locale|method|rel"
    r"|role|slug|src|target|template|type|uid|url|uuid|variant)"
)
"""a key whose values are codes, such as "type": "button", each one word in small letters"""
_WORD = re.compile(r"[a-z][a-z\d]*(?:-[a-z\d]+)*")


def is_text(text: str, key: str) -> bool:
    """Return whether the value of a key is a text of a language, or may be one.

    Anything with a space is, except for paths, colours and formats of dates. One word is, unless it
    is an address, a path, an identifier such as btn_ok, btnOk or app.title, a code with digits, a
    code of a language with its country, or a word in small letters under a key such as "type".
    """
    text = text.strip()
    if key.startswith("@") or _NO_TEXT.fullmatch(text):
        return False
    return not (_KEY_OF_CODES.fullmatch(key) and _WORD.fullmatch(text))


class ChosenValues:
    """Says which values of a file are translated, by the keys above them and by their texts."""

    def __init__(self, options: ReadingOptions) -> None:
        """Take the keys, and those to skip, from the options.

        A key is a name, or names with dots between them that follow each other anywhere on the way
        to a value, such as `menu.items`. `*` stands for any characters of one name. The elements of
        a list have the names of the list. A value of a named key is always translated; what is
        further inside only if it is a text.
        """
        self._wanted = {key: _KeyPattern(key) for key in options.key}
        self._skipped = {key: _KeyPattern(key) for key in options.skip_key}
        self._unused = {*self._wanted, *self._skipped}
        self._names: set[str] = set()
        self._paths: set[str] = set()
        self._find = functools.lru_cache(10_000)(self._look_up)

    def among(self, values: Iterable[DataValue], name: str) -> list[DataValue]:
        """Return the values that are translated.

        A warning says which key no text of the file `name` has, with the nearest one.
        """
        found = [value for value in values if self.has(value.path, value.text)]
        self.warn_of_unused(name)
        return found

    def has(self, path: Sequence[str], text: str) -> bool:
        """Return whether a text is translated that has the keys of `path` above it."""
        found = self._find(".".join(path))
        return is_text(text, path[-1] if path else "") if found is None else found

    def warn_of_unused(self, name: str) -> None:
        """Say which keys no text of the file `name` has, after all its texts were asked about."""
        for key in sorted(self._unused):
            near = nearest(key, self._paths if "." in key else self._names)
            print_warning(f"{name}: no text has the key {key!r}{near}")

    def _look_up(self, path: str) -> bool | None:
        """Return whether values at a path are translated; None: if they are texts."""
        names = path.split(".")
        self._names.update(names)
        self._paths.update(itertools.accumulate(names, "{}.{}".format))
        wanted = [each for each in self._wanted.values() if each.is_above(path)]
        skipped = [each for each in self._skipped.values() if each.is_above(path)]
        self._unused -= {each.key for each in [*wanted, *skipped]}
        if skipped or (self._wanted and not wanted):
            return False
        return True if any(each.is_at(path) for each in wanted) else None


class _KeyPattern:
    """A key that a user has named."""

    def __init__(self, key: str) -> None:
        self.key = key
        pattern = re.escape(key).replace(r"\*", "[^.]*")
        self._at = re.compile(rf"(?:^|\.){pattern}\Z")
        self._above = re.compile(rf"(?:^|\.){pattern}(?:\.|\Z)")

    def is_at(self, path: str) -> bool:
        """Return whether the key is the last part of a path."""
        return self._at.search(path) is not None

    def is_above(self, path: str) -> bool:
        """Return whether the key is a part of a path."""
        return self._above.search(path) is not None


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the end of a sentence that suggests the name most like `name`; empty if none is."""
    found = difflib.get_close_matches(name, [each for each in names if each], n=1, cutoff=0)
    return f"; did you mean {found[0]!r}?" if found else ""
