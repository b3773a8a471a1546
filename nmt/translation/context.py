"""The context of a sentence: those before it in its document, which the search reads with it.

The model has learnt it from joined pairs (`nmt.data.tokens.context`). If their targets were joined,
too, a hypothesis begins with the translations of the context, which are decoded again: so the
sentences of a document need not wait for each other. What stands behind the last separator is the
translation. Translations of the context that are given are forced instead.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from nmt.data.tokens.context import ContextWindow, without_context
from nmt.search.hypothesis import Hypothesis
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints
from nmt.search.searcher import Searcher
from nmt.translation.line import Context, EncodedLine, Line, Translation, Warn

LOST_CONTEXT = (
    "sentences that were translated without those before them, because the model did not translate "
    "these first, each before a separator: {:,}"
)


@dataclass(frozen=True)
class Found:
    """The hypotheses of a line, best first, without the translations of its context."""

    hypotheses: list[Hypothesis]
    limit: int
    """the most tokens that a hypothesis may have"""
    lost_context: bool = False
    """whether the last search for it was without its context"""


class ContextTransform:
    """Gives sentences their context before the search, and takes it off what is found."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher, loaded = searcher, searcher.loaded
        self._sides = loaded.tokenizer.source, loaded.tokenizer.target
        self._language = loaded.config.data.source_language
        self._window = ContextWindow.of_model(loaded.config, loaded.tokenizer)
        self._last = 0  # the number of the last line of a document
        self._lost = 0  # sentences that have lost their context since the last warning

    def add(
        self,
        lines: Sequence[Line],
        encoded: Iterable[EncodedLine],
        counts: Sequence[int],
        document: bool,
        known: Mapping[int, str] | None = None,
    ) -> list[EncodedLine]:
        """Return the sentences of some lines with their context.

        `encoded` are the sentences of the lines in order, `counts[i]` of line i; sentences after
        these get no context. `known` has the translations of lines that are not searched, by index.
        With `document`, consecutive lines are a document, which ends at a blank line or where the
        numbers of the lines leave one out; without it, a context is only what a line names.
        """
        sentences = list(encoded)
        if not self._window or not (document or any(line.context for line in lines)):
            return sentences
        rest, with_context = iter(sentences), list[EncodedLine]()
        for i, (line, count) in enumerate(zip(lines, counts, strict=False)):
            is_next = document and line.number == self._last + 1 and line.text.strip()
            if line.context or not is_next:
                self._window.clear()
                self._add_given(line.context)
            self._last = line.number
            if known and i in known:
                self._add_given(((line.text, known[i]),))
            for sentence in islice(rest, count):
                if sentence.ids:
                    context = self._window.context(sentence.ids)
                    sentence = replace(sentence, context=context if context.source else None)
                    self._window.add(sentence.ids)
                with_context.append(sentence)
        return [*with_context, *rest]

    def _add_given(self, context: Context) -> None:
        """Add texts, whose sentences are divided unless they have a translation."""
        from nmt.data.text.sentences import split_sentences  # only documents need it; takes time

        assert self._window
        for source, target in context:
            sources = [source] if target else split_sentences(source, self._language)
            for ids in self._sides[0].encode(sources):
                self._window.add(ids, self._sides[1].encode([target])[0])

    def search(self, lines: Sequence[EncodedLine], n_best: int) -> list[Found]:
        """Search some lines in one batch; return up to `n_best` hypotheses of each.

        Either all lines have constraints or none has. A line whose hypothesis has not as many
        separators as its context is searched again without it. If its constraints are not met, the
        translations that were found for its context are forced, and the rest is searched again.
        """
        first_lines = [self._first_search(line) for line in lines]
        found = self._search(first_lines, n_best)
        again: dict[int, EncodedLine] = {}
        for i, (line, first) in enumerate(zip(lines, found, strict=True)):
            context = line.context
            if not self._window or not context or not context.sentences:
                continue
            separator = self._window.separators[1]
            kept = [h for h in first.hypotheses if h.tokens.count(separator) == context.sentences]
            if not kept or kept[0] is not first.hypotheses[0]:
                again[i] = replace(line, context=None)
                continue
            best = kept[0].tokens
            own = [replace(h, tokens=tuple(without_context(h.tokens, separator))) for h in kept]
            target_length = len(best) - len(own[0].tokens)
            found[i] = Found(own, first.limit - target_length)
            is_forced = first_lines[i].constraints is not None
            if line.constraints and not is_forced and not self._meets(line, found[i]):
                again[i] = self._forced(line, best[:target_length])
        for i, second in zip(again, self._search(list(again.values()), n_best), strict=True):
            constraints = again[i].constraints
            length = len(constraints.context_ids) if constraints else 0  # of the forced context
            own = [replace(h, tokens=h.tokens[length:]) for h in second.hypotheses]
            found[i] = Found(own, second.limit - length, lost_context=not again[i].context)
        return found

    def count_lost(self, translations: Iterable[Sequence[Translation]]) -> None:
        """Count the translations of sentences that lost their context."""
        self._lost += sum(any(each.lost_context for each in row) for row in translations)

    def warn_of_lost(self, warn: Warn) -> None:
        """Call `warn` if sentences have lost their context since the last call."""
        if self._lost:
            warn(LOST_CONTEXT.format(self._lost))
        self._lost = 0

    def _first_search(self, line: EncodedLine) -> EncodedLine:
        """Return a line as it is searched first: without constraints if its context is decoded."""
        if not line.context or not line.context.sentences:
            return line
        if line.context.target and not self._searcher.sampling:
            return self._forced(line, tuple(line.context.target))
        return replace(line, constraints=None)

    def _forced(self, line: EncodedLine, context_ids: tuple[int, ...]) -> EncodedLine:
        constraints = line.constraints or _NO_CONSTRAINTS
        return replace(line, constraints=replace(constraints, context_ids=context_ids))

    def _search(self, lines: Sequence[EncodedLine], n_best: int) -> list[Found]:
        """Search lines with constraints and lines without, each by what searches them."""
        found: dict[int, Found] = {}
        settings = self._searcher.settings
        for constrained in (False, True):
            chosen = {
                i: each for i, each in enumerate(lines) if bool(each.constraints) is constrained
            }
            constraints = {i: _constraints(each) for i, each in chosen.items()}
            begins = [each.begin for each in chosen.values() if each.begin is not None]
            hypotheses = self._searcher.search(
                ids=[each.searched_ids for each in chosen.values()],
                numbers=[each.line.number for each in chosen.values()],
                constraints=list(constraints.values()),
                n_best=n_best,
                begins=begins or None,
            )
            for (i, each), of_line in zip(chosen.items(), hypotheses, strict=True):
                limit = settings.max_target_length(len(each.searched_ids))
                own = constraints[i]
                # the search adds room for the tokens of constraints
                found[i] = Found(of_line, limit + own.most_tokens if own else limit)
        return [found[i] for i in range(len(lines))]

    def _meets(self, line: EncodedLine, found: Found) -> bool:
        """Whether the best hypothesis has ended and meets the constraints of its line."""
        tokens = found.hypotheses[0].tokens
        [text] = self._sides[1].decode([tokens])
        assert line.constraints
        return len(tokens) < found.limit and line.constraints.are_met_by(text)


_NO_CONSTRAINTS = SpelledConstraints(LexicalConstraints(), (), (), (), (), b"")


def _constraints(line: EncodedLine) -> SpelledConstraints | None:
    """Return the constraints of a line, whose source tokens are counted with those before it."""
    if not line.constraints or not line.context:
        return line.constraints
    before = len(line.context.source)
    spans = (
        range(span.start + before, span.stop + before) if span else span
        for span in line.constraints.source_tokens
    )
    return replace(line.constraints, source_tokens=tuple(spans))
