"""The input and output lines of `nmt translate`, in the form that its options ask for."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nmt.cli.lines.json_lines import read_record, written_record
from nmt.cli.options.output import OutputOptions

if TYPE_CHECKING:
    from nmt.translation.line import Translation


def read_line(line: str, where: str, options: OutputOptions) -> dict[str, object]:
    """Return the record of a line, whose text has the key "source".

    Raises:
        DataError: With --json-input, the line is no such object; the message names `where`.
    """
    return read_record(line, where) if options.json_input else {"source": line}


def output_of(
    number: int,
    record: Mapping[str, object],
    translations: "list[Translation]",
    options: OutputOptions,
) -> str:
    """Return the output for a line: its translation, a list of several, or a JSON object."""
    if options.as_json:
        found = [_as_record(translation) for translation in translations]
        return written_record({**record, "translations": found})
    if options.n_best > 1:
        return "\n".join(
            f"{number} ||| {t.text} ||| {t.score:.4f}{_alignment_column(t, ' ||| ')}"
            for t in translations
        )
    return translations[0].text + _alignment_column(translations[0], "\t")


def _as_record(translation: "Translation") -> dict[str, object]:
    record: dict[str, object] = {"text": translation.text, "score": round(translation.score, 4)}
    if translation.utility is not None:
        record["utility"] = round(translation.utility, 4)
    if (alignment := translation.alignment) is not None:
        record["alignment"] = alignment.pharaoh()
        record["tokens"] = [
            {"piece": piece, "log_probability": round(value, 4)}
            for piece, value in zip(alignment.pieces, alignment.log_probabilities, strict=True)
        ]
    return record


def _alignment_column(translation: "Translation", separator: str) -> str:
    """Return the separator and the alignment; empty if no alignment was asked for."""
    return separator + translation.alignment.pharaoh() if translation.alignment else ""
