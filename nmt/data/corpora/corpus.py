"""A parallel corpus that can be downloaded or generated, and the languages that it has."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nmt.data.corpora.origin import Origin
from nmt.errors import ConfigError

# it becomes a part of file names
_LANGUAGE = re.compile(r"[_-]*[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Corpus:
    """A corpus, and what `nmt data list` tells of it."""

    name: str
    language_pairs: tuple[tuple[str, str], ...]
    """both directions can be learnt; the pair in most use comes first. Empty: only its text says
    which languages it has"""
    write: Callable[[Path, tuple[str, str], Origin], None]
    """writes {train,validation,test}.LANGUAGE into a folder"""
    description: str = ""
    pairs: str = ""
    """how many training pairs"""
    download: str = ""
    """how much is downloaded"""
    licence: str = ""
    url: str = ""
    """where it is described"""
    copy: str = ""
    """the name of its folder in NMT_TEST_DATA, if it is not `folder`"""

    @property
    def folder(self) -> str:
        """The name of its folder, which is one folder whatever the corpus's name is."""
        return self.name.replace("/", "--").replace(":", "--")

    def pair_of(self, source: str | None, target: str | None) -> tuple[str, str]:
        """Return the languages in the order asked for; for None, the first one that fits.

        Raises:
            ConfigError: there is no such pair; names those that there are.
        """
        if not self.language_pairs:
            return self._check_languages(source, target)
        for first, second in self.language_pairs:
            for pair in ((first, second), (second, first)):
                if source in (None, pair[0]) and target in (None, pair[1]):
                    return pair
        pairs = ", ".join(f"{first}-{second}" for first, second in self.language_pairs)
        raise ConfigError(
            f"corpus '{self.name}' has no {source or 'any'}-{target or 'any'}; it has {pairs}, in "
            "both directions (data.source_language, data.target_language)"
        )

    def _check_languages(self, source: str | None, target: str | None) -> tuple[str, str]:
        """Return the two languages; raise a ConfigError unless they are two different codes."""
        for language in (source, target):
            if language is not None and not _LANGUAGE.fullmatch(language):
                raise ConfigError(
                    f"'{language}' is not the code of a language, such as en or pt_br"
                )
        if source is None or target is None or source == target:
            raise ConfigError(
                f"corpus '{self.name}': which languages? got {source or 'none'} and "
                f"{target or 'none'}; name two (data.source_language and data.target_language, or "
                "--source-language and --target-language)"
            )
        return source, target
