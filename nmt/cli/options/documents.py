"""The options of `nmt translate` for documents."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.translation.documents.formats import FORMATS, OPTIONS_OF_NAMES, format_named

if TYPE_CHECKING:
    from nmt.translation.documents.document import LanguagePair, ReadingOptions


@dataclass(frozen=True)
class DocumentOptions:
    """The format of a document, and which of its texts are translated."""

    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help=f"text, {', '.join(FORMATS)}, or a suffix such as docx; by default what content "
            "and name of the file say. The translation of a document is one of the same format.",
        ),
    ] = None
    overwrite: Annotated[bool, typer.Option("--overwrite")] = False
    """Translate also what has a translation in an XLIFF, TMX, PO or TS file."""
    unconfirmed: Annotated[bool, typer.Option("--unconfirmed")] = False
    """In an XLIFF file, translate again what a program or a memory has suggested and nobody has
    confirmed."""
    key: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None
    """A key of a file of data or of strings, whose values are translated; may be given several
    times. No other values of such files are translated then."""
    skip_key: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None
    """A key whose values stay as they are; may be given several times."""
    column: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None
    """A column of a table that is translated: its name, or its number from 1 on; may be given
    several times."""
    skip_column: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None
    """A column that stays as it is; may be given several times."""
    block: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None
    """An element of an XML file that is a text; may be given several times."""
    inline: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None
    """An element of an XML file that is a mark inside a text; may be given several times."""

    bilingual: Annotated[bool, typer.Option("--bilingual")] = False
    """Write an XLIFF file with source and translation of each segment in place of the document, for
    a person to correct."""
    apply: Annotated[Path | None, typer.Option(metavar="XLIFF")] = None
    """Write the document with the targets of such a file, which needs no model."""

    @property
    def asked(self) -> str | None:
        """The format that is asked for, by its own name; None: that of each file.

        Raises:
            ConfigError: there is no such format.
        """
        return format_named(self.format) if self.format else None

    def reading(self, languages: "LanguagePair") -> "ReadingOptions":
        """Return how a document of these languages is read."""
        from nmt.translation.documents.document import ReadingOptions

        names = {option: tuple(getattr(self, option) or ()) for option in OPTIONS_OF_NAMES}
        return ReadingOptions(languages, self.overwrite, **names, unconfirmed=self.unconfirmed)
