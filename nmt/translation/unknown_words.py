"""Source words in place of unknown symbols, by what the decoder attended to.

Luong et al., 2015 (Addressing the Rare Word Problem in Neural Machine Translation) copy unknown
words by alignments; here attention takes their place. This is meant for a vocabulary of words. A
vocabulary of subwords has unknown characters only, and copies what the source has as one piece.
"""

from collections.abc import Sequence
from dataclasses import replace

from nmt.data.tokens.matches import without_matches
from nmt.data.tokens.tokenizer import UNK, Tokenizer
from nmt.search.searcher import Searcher
from nmt.search.source_attention import batch_of_pairs, most_attended, teacher_forced_attention
from nmt.translation.line import EncodedLine, Translation, one_line


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
    ids = without_matches(tokenizer.source, encoded.ids)
    batch = batch_of_pairs([ids] * len(unknown), [t.tokens for t in unknown.values()])
    batch = batch.to(searcher.torch.device)
    _logits, weights = teacher_forced_attention(
        model, batch, searcher.loaded.config.training.guided_alignment
    )
    positions = most_attended(weights, batch.source, model.padding).tolist()
    pieces = [piece.replace("▁", " ").strip() for piece in encoded.text_pieces(tokenizer.source)]
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
