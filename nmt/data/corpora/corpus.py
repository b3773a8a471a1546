"""What a corpus is to the rest of the program: its languages, and how its text is had."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nmt.data.corpora.download import Origin
from nmt.errors import ConfigError


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus that the toolkit knows how to get."""

    name: str
    description: str
    language_pairs: tuple[tuple[str, str], ...]
    """both directions can be learnt; the pair in most use comes first. None at all: it is only
    known when the text is there"""
    pairs: str
    """how many training pairs, for people"""
    download: str
    """how much is downloaded, for people"""
    licence: str
    url: str
    """where it is described"""
    write: Callable[[Path, tuple[str, str], Origin], None]
    """puts {train,validation,test}.LANGUAGE into a folder"""
    copy: str = ""
    """what its folder in NMT_TEST_DATA is called, if not by its name"""

    @property
    def folder(self) -> str:
        """The name of its folder: nothing of it leads elsewhere."""
        return self.name.replace("/", "--").replace(":", "--")

    def pair_of(self, source: str | None, target: str | None) -> tuple[str, str]:
        """The languages in the order asked for; a language left open is the first that fits.

        Raises:
            ConfigError: naming the pairs that there are.
        """
        if not self.language_pairs:
            return self._both(source, target)
        for first, second in self.language_pairs:
            for pair in ((first, second), (second, first)):
                if source in (None, pair[0]) and target in (None, pair[1]):
                    return pair
        pairs = ", ".join(f"{first}-{second}" for first, second in self.language_pairs)
        raise ConfigError(
            f"corpus '{self.name}' has no {source or 'any'}-{target or 'any'}; it has {pairs}, in "
            "both directions (data.source_language, data.target_language)"
        )

    def _both(self, source: str | None, target: str | None) -> tuple[str, str]:
        for language in (source, target):
            if language is not None and not _is_code(language):
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


def _is_code(language: str) -> bool:
    """Letters and digits with _ or - between them: it becomes part of file names."""
    return language.replace("_", "").replace("-", "").isalnum() and language.isascii()
