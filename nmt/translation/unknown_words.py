"""Unknown words: copied from the source, from where the decoder attended when it wrote them.

Luong et al., 2015 (Addressing the Rare Word Problem in Neural Machine Translation) do it with
alignments; here attention takes their place. It is meant for a vocabulary of words. A vocabulary of
subwords has unknown characters only, and copies what the source has as one piece.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.data.tokens.tokenizer import UNK, Tokenizer
from nmt.search.searcher import Searcher
from nmt.search.source_attention import most_attended, paired, teacher_forced_attention
from nmt.translation.line import EncodedLine, Translation, one_line


@dataclass(frozen=True)
class UnknownWordStage:
    """Replaces unknown symbols in the translations of lines without constraints."""

    searcher: Searcher

    def enter(self, lines: list[EncodedLine]) -> list[EncodedLine]:
        """Return the lines unchanged."""
        return lines

    def leave(
        self, lines: Sequence[EncodedLine], found: list[list[Translation]]
    ) -> list[list[Translation]]:
        """Write source words in the place of unknown symbols."""
        return [
            own if line.constraints else self._with_copies(line, own)
            for line, own in zip(lines, found, strict=True)
        ]

    def _with_copies(self, line: EncodedLine, found: list[Translation]) -> list[Translation]:
        rows = [k for k, translation in enumerate(found) if UNK in translation.tokens]
        if not rows:
            return found
        run = self.searcher.run
        batch = paired([line.ids for _ in rows], [found[k].tokens for k in rows])
        batch = batch.to(self.searcher.device)
        _, weights = teacher_forced_attention(run.model, batch)
        places = most_attended(weights, batch.source, run.model.padding).tolist()
        pieces = run.tokenizer.source.split(line.line.text)
        changed = list(found)
        for k, attended in zip(rows, places, strict=True):
            words = [
                pieces[place].replace("▁", " ").strip()
                for place in attended[: len(found[k].tokens)]
            ]
            text = _copied(run.tokenizer, found[k].tokens, found[k].text, words)
            changed[k] = replace(found[k], text=one_line(text))
        return changed


def _copied(tokenizer: Tokenizer, tokens: Sequence[int], text: str, words: Sequence[str]) -> str:
    """Replace token t of a text by word t where the token is unknown."""
    for t in reversed(range(len(tokens))):
        if tokens[t] == UNK:
            before, until = map(len, tokenizer.target.decode([tokens[:t], tokens[: t + 1]]))
            space = " " if text[before:until].startswith(" ") else ""
            text = text[:before] + space + words[t] + text[until:]
    return text
