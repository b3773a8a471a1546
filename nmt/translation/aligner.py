"""What the decoder attended to: word alignments, and source words in place of unknown symbols.

A translation is fed to the decoder once more (teacher forcing), which gives the attention and the
log-probability of each of its tokens.

Luong et al., 2015 (Addressing the Rare Word Problem in Neural Machine Translation) copy unknown
words by alignments; here attention takes their place. This is meant for a vocabulary of words. A
vocabulary of subwords has unknown characters only, and copies what the source has as one piece.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from nmt.data.tokens.batch import Batch
from nmt.data.tokens.tokenizer import EOS, UNK, SubwordModel, Tokenizer
from nmt.machine.device import autocast
from nmt.model.transformer import Transformer
from nmt.recipe.config import GuidedAlignmentConfig
from nmt.search.ensemble import log_mean_probability
from nmt.search.searcher import Searcher
from nmt.search.source_attention import batch_of_pairs, most_attended, teacher_forced_attention
from nmt.translation.line import Alignment, EncodedLine, Translation, one_line
from nmt.translation.scoring import pair_batches, target_log_probabilities
from nmt.translation.spans import Link, Span, linked_words

# A pair up to this length counts as its number of tokens. A longer one counts as length^2 / 64,
# because its attention weights are length * length numbers.
LINEAR_COST_LENGTH = 64


@torch.inference_mode()
def force_decode(
    model: Transformer, batch: Batch, guided: GuidedAlignmentConfig | None = None
) -> tuple[Tensor, Tensor]:
    """Decode given targets; return where in the source each token attends to most, and its log P.

    `model` must be in eval mode; `guided` names the head that learnt alignments, if one has. For B
    pairs of T target tokens the positions are (B, T - 1), from 0, without the last column (EOS or
    padding). log P is (B, T), in nats, and 0 at padding.
    """
    member_logits, weights = teacher_forced_attention(model, batch, guided)
    logits = member_logits[0]  # (B, T, V), as of each other model
    if len(member_logits) > 1:  # an ensemble: its models' probabilities are averaged
        logits = log_mean_probability(member_logits)
    positions = most_attended(weights[:, :-1], batch.source, model.padding)
    return positions, target_log_probabilities(logits, batch.target_output, model.padding)


def guided_head_of(searcher: Searcher) -> GuidedAlignmentConfig | None:
    """Return the settings of the attention head that learnt alignments; None: none has."""
    return searcher.loaded.config.training.guided_alignment


def align(
    lines: Sequence[EncodedLine], translations: list[list[Translation]], searcher: Searcher
) -> list[list[Translation]]:
    """Return the translations of each line with their alignments, empty for a copied line.

    Lines with their translations are computed in batches of at most `batch_tokens` of the settings.
    """
    tokenizer = searcher.loaded.tokenizer
    # at first all have an empty alignment, and those of copied lines keep it
    aligned = [[replace(t, alignment=Alignment()) for t in row] for row in translations]
    searched: list[tuple[int, int]] = []  # (index of a line, index of a translation of it)
    for i, line in enumerate(lines):
        if line.ids:  # copied lines have none
            searched += [(i, k) for k in range(len(translations[i]))]
    sources = [lines[i].ids for i, _ in searched]
    targets = [[*translations[i][k].tokens, EOS] for i, k in searched]
    batch_tokens = searcher.settings.batch_tokens

    def cost(length: int) -> int:
        """Return as how many tokens a pair counts in a batch: see `LINEAR_COST_LENGTH`."""
        return max(length, length * length // LINEAR_COST_LENGTH)

    device = searcher.torch.device
    for indices, batch in pair_batches(sources, targets, batch_tokens, cost):
        with autocast(device, searcher.precision):
            # (B, T - 1) and (B, T)
            positions, log_p = force_decode(
                searcher.torch.scoring_model, batch.to(device), guided_head_of(searcher)
            )
        rows = zip(indices, positions.tolist(), log_p.tolist(), strict=True)
        for index, attended, token_log_p in rows:
            i, k = searched[index]
            translation = translations[i][k]
            alignment = _alignment(tokenizer, lines[i], translation, attended, token_log_p)
            aligned[i][k] = replace(translation, alignment=alignment)
    return aligned


def align_requested(
    lines: Sequence[EncodedLine], translations: list[list[Translation]], searcher: Searcher
) -> list[list[Translation]]:
    """Return the translations of each line, with alignments where `Line.is_aligned` is True."""
    chosen = [i for i, encoded in enumerate(lines) if encoded.line.is_aligned]
    if len(chosen) == len(lines):
        return align(lines, translations, searcher)
    rows = align([lines[i] for i in chosen], [translations[i] for i in chosen], searcher)
    found = list(translations)
    for i, row in zip(chosen, rows, strict=True):
        found[i] = row
    return found


def _alignment(
    tokenizer: Tokenizer,
    encoded: EncodedLine,
    translation: Translation,
    attended: Sequence[int],
    token_log_p: Sequence[float],
) -> Alignment:
    """Return the alignment of one translation.

    `attended` and `token_log_p` are its rows of what `force_decode` returns.
    """
    text, tokens = encoded.line.text, translation.tokens
    target_spans = spans_of_tokens(tokenizer.target, tokens, translation.text)
    links = link(tokenizer.source.spans(text), target_spans, attended[: len(tokens)])
    words = linked_words(links, text, translation.text)
    with_end = tokens if translation.is_truncated else (*tokens, EOS)
    pieces = tuple(tokenizer.target.pieces[token] for token in with_end)
    return Alignment(words, pieces, tuple(token_log_p[: len(pieces)]), links)


def link(
    source: Sequence[Span], target: Sequence[Span], attended: Sequence[int]
) -> tuple[Link, ...]:
    """Return a link from target piece t to source piece `attended[t]`, as characters.

    A source piece without characters stands for the next that has some: where several bytes spell
    a character, only the last of them has it. Target pieces without characters have no link.
    """
    filled = list(source)
    for i in range(len(filled) - 2, -1, -1):  # from the end: filled[i + 1] has characters by then
        start, end = filled[i]
        if start == end:
            filled[i] = filled[i + 1]
    links = []
    for position, (start, end) in zip(attended, target, strict=True):
        if start < end:
            links.append(Link(filled[position], (start, end)))
    return tuple(links)


def spans_of_tokens(vocabulary: SubwordModel, tokens: Sequence[int], text: str) -> list[Span]:
    """Return the characters of a translation's text that each of its tokens has written.

    `text` is what the tokens decode to, or that with one part replaced by a later transform.
    """
    prefixes = vocabulary.decode([tokens[:t] for t in range(len(tokens) + 1)])
    decoded = one_line(prefixes[-1])
    ends = [len(prefix) for prefix in prefixes]  # ends[t]: where the first t tokens end
    for t in range(len(tokens) - 1, -1, -1):
        # Bytes decode to a symbol each until their character is complete, which then takes one
        # place only: no end may be after the next one.
        ends[t] = min(ends[t], ends[t + 1])
    if decoded != text:
        same_start = len(os.path.commonprefix([decoded, text]))
        # what follows the first character that differs, reversed to compare it from the end
        reversed_rests = [decoded[same_start + 1 :][::-1], text[same_start + 1 :][::-1]]
        same_end = len(os.path.commonprefix(reversed_rests))
        growth = len(text) - len(decoded)
        replaced_until = len(decoded) - same_end  # the characters after this have only moved
        for t, end in enumerate(ends):
            if end >= replaced_until and end > same_start:
                ends[t] = end + growth
            elif end > same_start:  # inside the replaced part
                ends[t] = min(end, replaced_until + growth)
    return list(pairwise(ends))


def copy_unknown_words(
    lines: Sequence[EncodedLine], translations: list[list[Translation]], searcher: Searcher
) -> list[list[Translation]]:
    """Return the translations of each line with source words in place of unknown symbols.

    Each unknown symbol becomes the source piece that the decoder attended to most at its position.
    Only texts change, not tokens. A line with constraints keeps its translations unchanged: its
    terms may have another spelling, so that the text is not what the tokens decode to.
    """
    return [
        row if encoded.constraints else _with_copies(encoded, row, searcher)
        for encoded, row in zip(lines, translations, strict=True)
    ]


def _with_copies(
    encoded: EncodedLine, translations: list[Translation], searcher: Searcher
) -> list[Translation]:
    """Return the translations of one line with source words in place of unknown symbols."""
    unknown = {k: t for k, t in enumerate(translations) if UNK in t.tokens}
    if not unknown:
        return translations
    model, tokenizer = searcher.torch.scoring_model, searcher.loaded.tokenizer
    batch = batch_of_pairs([encoded.ids] * len(unknown), [t.tokens for t in unknown.values()])
    batch = batch.to(searcher.torch.device)
    _logits, weights = teacher_forced_attention(model, batch, guided_head_of(searcher))
    positions = most_attended(weights, batch.source, model.padding).tolist()
    pieces = [
        piece.replace("▁", " ").strip() for piece in tokenizer.source.split(encoded.line.text)
    ]
    changed = list(translations)
    for (k, t), attended in zip(unknown.items(), positions, strict=True):
        words = [pieces[position] for position in attended[: len(t.tokens)]]
        changed[k] = replace(t, text=one_line(_replace_unknown(tokenizer, t, words)))
    return changed


def _replace_unknown(tokenizer: Tokenizer, translation: Translation, words: Sequence[str]) -> str:
    """Return the text of a translation with word t in place of token t where that is unknown."""
    tokens, text = translation.tokens, translation.text
    for t in reversed(range(len(tokens))):  # from the end: earlier positions in the text stay valid
        if tokens[t] == UNK:
            before, up_to_token = tokenizer.target.decode([tokens[:t], tokens[: t + 1]])
            start, end = len(before), len(up_to_token)
            space = " " if text[start:end].startswith(" ") else ""
            text = text[:start] + space + words[t] + text[end:]
    return text
