"""Unknown words: copied from the source, where the decoder looked when it wrote the unknown symbol.

As Luong et al., 2015 (Addressing the Rare Word Problem in Neural Machine Translation) do with
alignments, here with attention. It is meant for a vocabulary of words; one of subwords has unknown
characters only, and copies what the source has as one piece.
"""

from collections.abc import Sequence

from nmt.data.tokens.tokenizer import UNK, Tokenizer
from nmt.model.transformer import Transformer
from nmt.search.hypothesis import Hypothesis
from nmt.search.source_attention import forced_attention, most_attended, paired


def with_copies(
    model: Transformer,
    tokenizer: Tokenizer,
    source: str,
    ids: Sequence[int],
    hypotheses: Sequence[Hypothesis],
    texts: Sequence[str],
) -> list[str]:
    """The decoded `texts` of hypotheses for one source without unknown symbols.

    `ids` are those of the source.
    """
    rows = [k for k, hypothesis in enumerate(hypotheses) if UNK in hypothesis.tokens]
    written = list(texts)
    if not rows:
        return written
    batch = paired([ids for _ in rows], [hypotheses[k].tokens for k in rows])
    batch = batch.to(next(model.parameters()).device)
    _, weights = forced_attention(model, batch)
    places = most_attended(weights, batch.source, model.padding).tolist()
    pieces = tokenizer.source_spellings(source)
    for k, attended in zip(rows, places, strict=True):
        words = [
            pieces[place].replace("▁", " ").strip()
            for place in attended[: len(hypotheses[k].tokens)]
        ]
        written[k] = _copied(tokenizer, hypotheses[k].tokens, written[k], words)
    return written


def _copied(tokenizer: Tokenizer, tokens: Sequence[int], text: str, words: Sequence[str]) -> str:
    """The text with word t in the place of token t, where that is unknown."""
    for t in reversed(range(len(tokens))):
        if tokens[t] == UNK:
            before, until = map(len, tokenizer.decode([tokens[:t], tokens[: t + 1]]))
            space = " " if text[before:until].startswith(" ") else ""
            text = text[:before] + space + words[t] + text[until:]
    return text
