"""What the decoder attended to: word alignments, and source words in place of unknown symbols.

A translation is fed to the decoder once more (teacher forcing), which gives the attention and the
log-probability of each of its tokens.

Luong et al., 2015 (Addressing the Rare Word Problem in Neural Machine Translation) copy unknown
words by alignments; here attention takes their place. This is meant for a vocabulary of words. A
vocabulary of subwords has unknown characters only, and copies what the source has as one piece.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from nmt.data.tokens.batch import Batch
from nmt.data.tokens.tokenizer import EOS, UNK, Tokenizer
from nmt.device import autocast
from nmt.model.transformer import Transformer
from nmt.search.ensemble import log_mean_probability
from nmt.search.searcher import Searcher
from nmt.search.source_attention import most_attended, paired, teacher_forced_attention
from nmt.translation.line import Alignment, EncodedLine, Translation, one_line
from nmt.translation.scoring import pair_batches, target_log_probabilities

# Attention grows with the square of the length: longer sentences count as more tokens.
EVEN_LENGTH = 64
# a vocabulary of bytes can spell these, and the text of a translation has spaces in their place
_BLANK_BYTES = ("<0x20>", "<0x0A>", "<0x0D>")
_BOUNDARIES = frozenset("▁ \n\r")


@torch.inference_mode()
def attend(model: Transformer, batch: Batch) -> tuple[Tensor, Tensor]:
    """Feed the targets to a model in eval mode, in one pass.

    Returns the source position that each target token but the last attends to most, (B, T - 1), and
    log P of each target token, (B, T).
    """
    logits, weights = teacher_forced_attention(model, batch)
    joint = log_mean_probability(logits) if len(logits) > 1 else logits[0]
    places = most_attended(weights[:, :-1], batch.source, model.padding)
    return places, target_log_probabilities(joint, batch.target_output, model.padding)


def align(
    lines: Sequence[EncodedLine], found: list[list[Translation]], searcher: Searcher
) -> list[list[Translation]]:
    """Add its alignment to each translation; that of a copied line is empty."""
    aligned = [[replace(t, alignment=Alignment()) for t in own] for own in found]
    places = [(i, k) for i, line in enumerate(lines) if line.ids for k in range(len(found[i]))]
    sources = [lines[i].ids for i, _ in places]
    targets = [[*found[i][k].tokens, EOS] for i, k in places]
    batch_tokens = searcher.settings.batch_tokens
    for rows, batch in pair_batches(sources, targets, batch_tokens, _attention_cost):
        batch = batch.to(searcher.device)
        with autocast(searcher.device, searcher.precision):
            attended, scores = attend(searcher.run.model, batch)
        for row, own, log_probabilities in zip(
            rows, attended.tolist(), scores.tolist(), strict=True
        ):
            i, k = places[row]
            alignment = _alignment(
                searcher.run.tokenizer, lines[i], found[i][k], own, log_probabilities
            )
            aligned[i][k] = replace(found[i][k], alignment=alignment)
    return aligned


def _alignment(
    tokenizer: Tokenizer,
    line: EncodedLine,
    translation: Translation,
    attended: Sequence[int],
    scores: Sequence[float],
) -> Alignment:
    tokens = translation.tokens
    read = tokenizer.source.split(line.line.text)[: len(line.ids) - 1]
    words = align_words(read, tokenizer.target.spell(tokens), attended[: len(tokens)])
    predicted = list(tokens) if translation.is_truncated else [*tokens, EOS]
    pieces = tuple(tokenizer.target.pieces_of(predicted))
    return Alignment(words, pieces, tuple(scores[: len(pieces)]))


def _attention_cost(length: int) -> int:
    return max(length, length * length // EVEN_LENGTH)


def align_words(
    source: Sequence[str], target: Sequence[str], attended: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Return pairs of words: those of target piece t and of source piece `attended[t]`.

    A word is what spaces separate in the text that the tokenizer has normalised. SentencePiece
    writes a space as "▁" in front of the piece that follows it.
    """
    read, written = word_spans(source), word_spans(target)
    pairs = {
        (i, j)
        for place, words in zip(attended, written, strict=True)
        for i in read[place]
        for j in words
    }
    return tuple(sorted(pairs))


def word_spans(pieces: Sequence[str]) -> list[range]:
    """Return the words that each piece is a part of.

    A space by itself belongs to the word that begins after it.
    """
    spans = []
    word, at_boundary = -1, True
    for piece in pieces:
        first = None
        for character in "▁" if piece in _BLANK_BYTES else piece:
            if character in _BOUNDARIES:
                at_boundary = True
                continue
            word += at_boundary
            at_boundary = False
            first = word if first is None else first
        spans.append(range(word + 1, word + 2) if first is None else range(first, word + 1))
    return [range(span.start, min(span.stop, word + 1)) for span in spans]


def copy_unknown_words(
    lines: Sequence[EncodedLine], found: list[list[Translation]], searcher: Searcher
) -> list[list[Translation]]:
    """Write source words in the place of unknown symbols, in lines without constraints.

    The word is the one that the decoder attended to most.
    """
    return [
        own if line.constraints else _with_copies(line, own, searcher)
        for line, own in zip(lines, found, strict=True)
    ]


def _with_copies(
    line: EncodedLine, found: list[Translation], searcher: Searcher
) -> list[Translation]:
    rows = [k for k, translation in enumerate(found) if UNK in translation.tokens]
    if not rows:
        return found
    run = searcher.run
    batch = paired([line.ids for _ in rows], [found[k].tokens for k in rows]).to(searcher.device)
    _, weights = teacher_forced_attention(run.model, batch)
    places = most_attended(weights, batch.source, run.model.padding).tolist()
    pieces = [
        piece.replace("▁", " ").strip() for piece in run.tokenizer.source.split(line.line.text)
    ]
    changed = list(found)
    for k, attended in zip(rows, places, strict=True):
        tokens, text = found[k].tokens, found[k].text
        words = [pieces[place] for place in attended[: len(tokens)]]
        changed[k] = replace(found[k], text=one_line(_replaced(run.tokenizer, tokens, text, words)))
    return changed


def _replaced(tokenizer: Tokenizer, tokens: Sequence[int], text: str, words: Sequence[str]) -> str:
    """Replace token t of a text by word t where the token is unknown."""
    for t in reversed(range(len(tokens))):
        if tokens[t] == UNK:
            before, until = map(len, tokenizer.target.decode([tokens[:t], tokens[: t + 1]]))
            space = " " if text[before:until].startswith(" ") else ""
            text = text[:before] + space + words[t] + text[until:]
    return text
