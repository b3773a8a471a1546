"""Word alignments: what the decoder attended to when it read or wrote each token.

A translation is fed to the decoder once more (teacher forcing), which gives the attention and the
log-probability of each of its tokens.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from nmt.data.tokens.matches import without_matches
from nmt.data.tokens.tokenizer import EOS, SubwordModel, Tokenizer
from nmt.search.forced_decoding import ForcedTarget, force_decode_in_c
from nmt.search.searcher import Searcher
from nmt.translation.line import Alignment, EncodedLine, Translation, one_line
from nmt.translation.spans import Link, Span


def align(
    lines: Sequence[EncodedLine], translations: list[list[Translation]], searcher: Searcher
) -> list[list[Translation]]:
    """Return the translations of each line with their alignments, empty for a copied line.

    Lines with their translations are decoded in batches of at most `batch_tokens` of the settings.
    """
    tokenizer = searcher.loaded.tokenizer
    # at first all have an empty alignment, and those of copied lines keep it
    aligned = [[replace(t, alignment=Alignment()) for t in row] for row in translations]
    searched: list[tuple[int, int]] = []  # (index of a line, index of a translation of it)
    for i, line in enumerate(lines):
        if line.ids:  # copied lines have none
            searched += [(i, k) for k in range(len(translations[i]))]
    # a translation is linked with its source alone, whatever matches the search had besides
    sources = [without_matches(tokenizer.source, lines[i].ids) for i, _ in searched]
    targets = [[*translations[i][k].tokens, EOS] for i, k in searched]
    for (i, k), forced in zip(searched, _force_decode(sources, targets, searcher), strict=True):
        translation = translations[i][k]
        alignment = _alignment(tokenizer, lines[i], translation, forced)
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


def _force_decode(
    sources: Sequence[list[int]], targets: Sequence[list[int]], searcher: Searcher
) -> list[ForcedTarget]:
    """Decode the targets by what searches: the C library, or PyTorch, which is imported then."""
    if searcher.native:
        guided = searcher.loaded.config.training.guided_alignment
        batch_tokens = searcher.settings.batch_tokens
        return force_decode_in_c(searcher.native, sources, targets, batch_tokens, guided)
    from nmt.translation.scoring import force_decode_pairs

    return force_decode_pairs(sources, targets, searcher)


def _alignment(
    tokenizer: Tokenizer,
    encoded: EncodedLine,
    translation: Translation,
    forced: ForcedTarget,
) -> Alignment:
    """Return the alignment of one translation."""
    tokens = translation.tokens
    target_spans = spans_of_tokens(tokenizer.target, tokens, translation.text)
    links = link(encoded.source_spans(tokenizer.source), target_spans, forced.attended)
    with_end = tokens if translation.is_truncated else (*tokens, EOS)
    pieces = tuple(tokenizer.target.pieces[token] for token in with_end)
    return Alignment(pieces, tuple(forced.log_p[: len(pieces)]), links)


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
