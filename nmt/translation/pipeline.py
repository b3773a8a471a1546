"""Lines in, translations out, in order: a pipeline around a search.

    Line -> cut_ends -> hide -> split_lines -> encode -> hide_unknown -> constrain -> search
                                                                                        |
    list of Translations <- ends <- join <- finishing stages <- decode <- Hypothesis <- +

Before all that, the texts in ICU messages become lines, too (message_texts.py). They return last.
`constrain` also decides which lines are copied: they go to the finishing stages without a search.
Lines are read in windows, and searched in batches of similar length. A task is one batch, from the
search to the last finishing stage. This process computes it, or one of several others, here or on
other machines. The batches are the same for any number of processes, and so are the translations.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, tee
from typing import Self

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import Progress, print_warning
from nmt.search.hypothesis import Hypothesis
from nmt.search.searcher import SearchBatch, Searcher
from nmt.search.windows import WINDOW_LINES, truncate, windows
from nmt.translation.capitals import CapitalsStage
from nmt.translation.document import join, split_lines
from nmt.translation.hidden_parts import without_tags
from nmt.translation.line import (
    MAX_SOURCE_TOKENS,
    EncodedLine,
    Line,
    Translation,
    Warn,
    one_line,
)
from nmt.translation.line_ends import LineEnds, cut_ends
from nmt.translation.message_texts import MessageTexts
from nmt.translation.process_pool import Pool, ProcessPool
from nmt.translation.protected import ProtectionStage
from nmt.translation.terminology import TerminologyStage

NBestLists = list[list[Translation]]
"""the translations of several lines: a list for each line, best first"""
FinishingStage = Callable[[Sequence[EncodedLine], NBestLists], NBestLists]
"""takes lines and the translations of each line; returns translations, changed or fewer"""


@dataclass
class _Window:
    """Lines that are read together, and the translations of the lines already searched."""

    lines: Sequence[Line]
    ends: dict[int, LineEnds]
    """what the model does not see at the ends of the lines at these indices"""
    sentence_counts: list[int]
    """how many encoded lines each line has become"""
    encoded: list[EncodedLine]
    translations: NBestLists
    """the translations of each encoded line; empty until its batch is searched"""
    batches: list[list[int]]
    """the encoded lines that are searched together, as indices"""
    messages: MessageTexts
    """which of the lines are texts of ICU messages in others; they are the last ones"""

    def finished(self, translations: NBestLists) -> NBestLists:
        """Return the translations of the lines after their ends and their texts are added."""
        for i, ends in self.ends.items():
            translations[i] = [ends.add_to(translation) for translation in translations[i]]
        return self.messages.put_back(translations)

    def joined(self) -> NBestLists:
        """Return one translation of each line: those of its sentences, joined."""
        pairs = zip(self.encoded, self.translations, strict=True)
        sentences = ((encoded.line, best) for encoded, (best, *_) in pairs)
        counts = zip(self.lines, self.sentence_counts, strict=True)
        # each line takes its next n sentences
        return [[join(line.text, list(islice(sentences, n)))] for line, n in counts]


@dataclass
class Pipeline:
    """Translates lines; use it in a `with` statement, which ends its processes."""

    searcher: Searcher
    protection: ProtectionStage
    capitals: CapitalsStage
    terminology: TerminologyStage
    finishing_stages: Sequence[FinishingStage]
    """applied to the translations of each batch in this order, after the search"""
    n_best: int
    """how many hypotheses the search returns for each line; with `document`, each sentence"""
    document: bool
    """whether lines are split into sentences"""
    processes: int
    """1: this process translates; n > 1: n other processes do, each with one thread"""
    pool: Pool[list[EncodedLine], NBestLists] | None = None
    """what computes `translate_batch` on other machines; None: processes of this one do"""

    def __post_init__(self) -> None:
        self._pool = self.pool or ProcessPool(self.translate_batch, self.processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def translate(
        self,
        lines: Iterable[Line],
        window_lines: int = WINDOW_LINES,
        warn: Warn = print_warning,
        progress: Progress = lambda lines: None,
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each line, best first; with `document` the joined one alone.

        Up to `window_lines` lines are read at once. `warn` gets a message for each line that is too
        long, `progress` the number of lines done since its last call.
        """
        groups = windows(lines, window_lines, characters=lambda line: len(line.text))
        for translations in self.translate_windows(groups, warn, progress):
            yield from translations

    def translate_windows(
        self,
        windows_of_lines: Iterable[Sequence[Line]],
        warn: Warn = print_warning,
        progress: Progress = lambda lines: None,
    ) -> Iterator[NBestLists]:
        """Yield for each window the translations of its lines, best first (`document`: one joined).

        `_encode_window` cuts a window into batches, which `translate_batch` searches. With one
        process, a window is yielded before the next one is read; with several, some windows are
        read ahead. `warn` and `progress` are called as in `translate`.

        Raises:
            NmtError: the memory does not suffice, or a process died.
            DataError: the constraints on a line contradict each other; the message names it.
        """

        def read_batches() -> Iterator[tuple[_Window, list[int]]]:
            for lines in windows_of_lines:
                window = self._encode_window(lines, warn)
                for batch in window.batches:
                    yield window, batch

        if self.processes > 1:
            self.searcher.prepare()  # before processes are forked, which then share the model
        # Two iterators over the same batches: the pool may read ahead of its results, and the loop
        # below pairs each result with the batch that it is of.
        for_pool, for_results = tee(read_batches())
        tasks = ([window.encoded[i] for i in batch] for window, batch in for_pool)
        results = self._pool.map(tasks)  # calls translate_batch for each task, in order
        for rows, (window, batch) in zip(results, for_results, strict=True):
            for i, translations in zip(batch, rows, strict=True):
                window.translations[i] = translations
            if not self.document:  # with `document` a line is done when all its sentences are
                progress(sum(i < window.messages.count for i in batch))
            is_complete = batch is window.batches[-1]  # every window has a batch, if an empty one
            if not is_complete:
                continue
            if self.document:
                progress(window.messages.count)
                yield window.finished(window.joined())
            else:
                read = window.encoded[: window.messages.count]
                progress(sum(not line.ids for line in read))  # copied, so in no batch
                yield window.finished(window.translations)

    def translate_batch(self, lines: Sequence[EncodedLine]) -> NBestLists:
        """Return the translations of each line: search all in one batch, then apply the stages."""
        lines = list(lines)
        decoded = self._search(lines)
        if again := self.protection.lines_to_search_again(lines, decoded):
            tokenizer = self.searcher.loaded.tokenizer
            encoded = encode(tokenizer, list(again.values()), warn=lambda _: None)
            changed = zip(again, self.terminology.constrain(encoded), strict=True)
            searched = {i: line for i, line in changed if line.ids}
            found = self._search(list(searched.values()))
            for (i, line), translations in zip(searched.items(), found, strict=True):
                lines[i], decoded[i] = line, translations
        for i, translations in enumerate(decoded):
            if not translations:  # all were blank
                source = self.searcher.loaded.tokenizer.source
                lines[i] = EncodedLine(without_tags(lines[i].line, source), ids=[])
                decoded[i] = [copy_of(lines[i])]
        return self._finish(lines, decoded)

    def _search(self, lines: Sequence[EncodedLine]) -> NBestLists:
        """Return the translations of each line as the search finds them, but no blank ones.

        The search finds no empty translation, but tokens may spell white space, or nothing.
        """
        batch = SearchBatch(
            ids=[encoded.ids for encoded in lines],
            numbers=[encoded.line.number for encoded in lines],
            constraints=[encoded.constraints for encoded in lines],
            n_best=self.n_best,
        )
        results = zip(lines, self.searcher.search(batch), strict=True)
        rows = (decode(self.searcher, line, hypotheses) for line, hypotheses in results)
        return [[each for each in row if each.text.strip()] for row in rows]

    def _encode_window(self, lines: Sequence[Line], warn: Warn) -> _Window:
        """Encode the lines, finish those that are copied, and cut the others into batches."""
        loaded = self.searcher.loaded
        language = loaded.config.data.source_language
        tag_length = loaded.tokenizer.source.tag_length
        messages = MessageTexts(lines, self.protection.patterns, tag_length)
        lines, ends = self._cut_ends(messages.lines)
        hidden = self.capitals.mark(self.protection.hide(lines))
        groups = [[line] for line in hidden]
        if self.document:
            groups = split_lines(loaded.tokenizer.source, language, hidden, warn)
        sentences = self.capitals.lower([line for group in groups for line in group])
        encoded = encode(loaded.tokenizer, sentences, warn)
        if changed := self.protection.hide_unknown(encoded):
            again = encode(loaded.tokenizer, list(changed.values()), warn=lambda _: None)
            for i, line in zip(changed, again, strict=True):
                encoded[i] = line
        encoded = self.terminology.constrain(encoded)
        translations: NBestLists = [[] for _ in encoded]
        to_copy = [i for i, line in enumerate(encoded) if not line.ids]
        copied = [encoded[i] for i in to_copy]
        finished = self._finish(copied, [[copy_of(line)] for line in copied])
        for i, copies in zip(to_copy, finished, strict=True):
            translations[i] = copies
        batches = list(self._batches(encoded))
        if not batches:  # all lines are copied: without a batch the window would never be yielded
            batches = [[]]
        counts = [len(group) for group in groups]
        return _Window(lines, ends, counts, encoded, translations, batches, messages)

    def _cut_ends(self, lines: Sequence[Line]) -> tuple[list[Line], dict[int, LineEnds]]:
        """Return the lines without their ends, and the ends of each line that has some."""
        source = self.searcher.loaded.tokenizer.source
        language = self.searcher.loaded.config.data.source_language
        inner: list[Line] = []
        found: dict[int, LineEnds] = {}
        for i, line in enumerate(lines):
            asked = (self.terminology.terminology, line.terminology)
            if any(terminology and terminology.prefix for terminology in asked):
                inner.append(line)  # each translation begins with what the user asks for
                continue
            cut, ends = cut_ends(line, source, language)
            inner.append(cut)
            if cut is not line:
                found[i] = ends
        return inner, found

    def _batches(self, encoded: Sequence[EncodedLine]) -> Iterator[list[int]]:
        """Yield batches of the lines to search, as indices."""
        groups: Iterable[Sequence[int]] = [range(len(encoded))]
        if self.document:  # the sentences may be many more than the lines
            groups = windows(
                range(len(encoded)), WINDOW_LINES, characters=lambda i: len(encoded[i].line.text)
            )
        lengths = [len(line.ids) for line in encoded]
        constraints = [line.constraints for line in encoded]
        for group in groups:
            to_search = [i for i in group if encoded[i].ids]
            yield from self.searcher.batches(to_search, lengths, constraints)

    def _finish(self, lines: Sequence[EncodedLine], translations: NBestLists) -> NBestLists:
        """Apply all finishing stages, one after another."""
        for stage in self.finishing_stages:
            translations = stage(lines, translations)
        return translations


def encode(tokenizer: Tokenizer, lines: Sequence[Line], warn: Warn) -> list[EncodedLine]:
    """Return the lines with source ids; a blank text or one without tokens gets none: it is copied.

    A line of more than `MAX_SOURCE_TOKENS` is truncated, and `warn` is called with a message.
    """

    def report(index: int, length: int) -> None:
        warn(
            f"line {lines[index].number} has {length} tokens; only the first {MAX_SOURCE_TOKENS} "
            "are translated: split it into sentences"
        )

    unencoded = [line.text for line in lines if line.ids is None]
    new_ids = iter(tokenizer.source.encode(unencoded))
    rows = []
    for line in lines:
        if line.ids is None:
            rows.append(next(new_ids))  # in the order of `unencoded`
        else:
            rows.append(list(line.ids))
    rows = truncate(rows, MAX_SOURCE_TOKENS, report)
    encoded = []
    for line, ids in zip(lines, rows, strict=True):
        has_tokens = bool(line.text.strip()) and len(ids) > 1  # more than EOS
        encoded.append(EncodedLine(line, ids if has_tokens else []))
    return encoded


def decode(
    searcher: Searcher, line: EncodedLine, hypotheses: Sequence[Hypothesis]
) -> list[Translation]:
    """Return the hypotheses of a line as translations: ids become text, a single line.

    A hypothesis of as many target tokens as the search allows is marked as truncated.
    """
    limit = searcher.settings.max_target_length(len(line.ids))
    if line.constraints:  # the search adds room for their tokens to the limit
        limit += line.constraints.most_tokens
    texts = searcher.loaded.tokenizer.target.decode([h.tokens for h in hypotheses])
    return [
        Translation(one_line(text), h.score, tokens=h.tokens, is_truncated=len(h.tokens) >= limit)
        for text, h in zip(texts, hypotheses, strict=True)
    ]


def copy_of(encoded: EncodedLine) -> Translation:
    """Return the translation of a line to copy: its own text, or an empty text if it is blank."""
    text = encoded.line.text
    return Translation(one_line(text) if text.strip() else "", score=0.0)
