"""Lines to ids, and hypotheses to text: the innermost step of the pipeline."""

from collections.abc import Sequence

from nmt.config import DecodingConfig
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.search.decoding import Hypothesis
from nmt.search.windows import non_blank, truncate
from nmt.translation.line import EncodedLine, Line, Translation, Warn, one_line

MAX_SOURCE_TOKENS = 1024


def encode(tokenizer: Tokenizer, lines: Sequence[Line], warn: Warn) -> list[EncodedLine]:
    """Tokenise each line once; a line without tokens is to be copied.

    A line of more than `MAX_SOURCE_TOKENS` is truncated, and `warn` is told its number.
    """

    def report(index: int, length: int) -> None:
        warn(
            f"line {lines[index].number} has {length} tokens; only the first {MAX_SOURCE_TOKENS} "
            "are translated: split it into sentences"
        )

    unknown = [line.text for line in lines if not line.ids]
    encoded = iter(tokenizer.encode_source(unknown))
    rows = [list(line.ids) or next(encoded) for line in lines]
    rows = truncate(rows, MAX_SOURCE_TOKENS, report)
    to_translate = set(non_blank([line.text for line in lines], rows))
    return [
        EncodedLine(line, row if i in to_translate else [])
        for i, (line, row) in enumerate(zip(lines, rows, strict=True))
    ]


def decode(
    tokenizer: Tokenizer,
    settings: DecodingConfig,
    line: EncodedLine,
    hypotheses: Sequence[Hypothesis],
) -> list[Translation]:
    """The hypotheses of a line as text."""
    room = line.constraints.room if line.constraints else 0
    limit = len(line.ids) + settings.max_length_offset + room
    texts = tokenizer.decode([h.tokens for h in hypotheses])
    return [
        Translation(one_line(text), h.score, h.tokens, len(h.tokens) >= limit)
        for text, h in zip(texts, hypotheses, strict=True)
    ]


def copy_of(line: EncodedLine) -> Translation:
    """The translation of a line that is not searched for: its own text, or nothing if blank."""
    text = line.line.text
    return Translation(one_line(text) if text.strip() else "", 0.0)
