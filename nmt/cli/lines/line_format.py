"""The format of the input and output lines of `nmt translate`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmt.cli.lines.json_lines import read_record, written_record
from nmt.cli.options.output import alignment_column, as_record
from nmt.cli.options.terminology import line_terminology

if TYPE_CHECKING:
    from nmt.translation.line import Translation
    from nmt.translation.terminology import Terminology


@dataclass(frozen=True)
class LineFormat:
    """How lines are read, and how translations are written."""

    json_input: bool
    as_json: bool
    n_best: int
    document: bool

    def read(self, line: str, where: str) -> dict[str, object]:
        """The record of a line, whose text has the key "source"."""
        return read_record(line, where) if self.json_input else {"source": line}

    def asked(self, record: Mapping[str, object], where: str) -> "Terminology | None":
        """The constraints that a JSON line has for its own translation."""
        return line_terminology(record, where) if self.json_input else None

    def written(
        self, number: int, record: Mapping[str, object], translations: "list[Translation]"
    ) -> str:
        """The output for a line: its translation, a list of several, or a JSON object."""
        if self.as_json:
            found = [as_record(translation) for translation in translations]
            return written_record({**record, "translations": found})
        if self.n_best > 1:
            return "\n".join(
                f"{number} ||| {t.text} ||| {t.score:.4f}{alignment_column(t, ' ||| ')}"
                for t in translations
            )
        return translations[0].text + alignment_column(translations[0], "\t")
