"""The options of `nmt translate` for documents."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.translation.documents.formats import FORMATS, format_named

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
    """Translate also what has a translation in an XLIFF, TMX or PO file."""
    key: Annotated[list[str] | None, typer.Option("--key", "--column", metavar="NAME")] = None
    """A key of a file of data, or a column of a table, whose values are translated; may be given
    several times. It holds for all tables and files of data of a folder, of which no other values
    are translated then."""
    skip_key: Annotated[
        list[str] | None, typer.Option("--skip-key", "--skip-column", metavar="NAME")
    ] = None
    """A key or a column whose values stay as they are; may be given several times."""
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

        return ReadingOptions(
            languages,
            self.overwrite,
            tuple(self.key or ()),
            tuple(self.skip_key or ()),
            tuple(self.block or ()),
            tuple(self.inline or ()),
        )
