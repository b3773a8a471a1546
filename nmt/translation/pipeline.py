"""Lines in, translations out, in order: a pipeline around a search.

    in:  lines -> tags -> exact matches -> messages -> edges -> protection -> sentences -> capitals
               -> ids -> unknown parts -> terminology -> context -> similar matches -> batches
               -> search
    out: hypotheses -> text -> terminology -> unknown words -> candidates -> alignment -> capitals
               -> protection -> comparison -> sentences joined -> edges -> messages -> exact matches

`_encode_window` is the way in, `translate_batch` and `_finish_window` are the way out, in this
order. Most transforms are objects with two functions: one takes the lines on the way in, the other
takes their translations on the way out, as the transforms of OpenNMT. They do not know each other.
A text passes those that it needs: those of tags, protected parts, sentences and alignments are not
called without them. Every line passes `cut`, `lower`, `replace_unknown` and `constrain`, which also
decides which lines are copied without a search; the functions return most lines as they are.

Lines are read in windows, and searched in batches of similar length. A task is one batch, from the
search to the last finishing transform. This process computes it, or one of several others, here
or on other machines. The batches are the same for any number of processes, and so are the
translations.
"""

import platform
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, islice
from typing import Self

from nmt.errors import NmtError, Progress, print_warning
from nmt.machine.process_pool import Pool, ProcessPool
from nmt.memory.match import Match
from nmt.search.searcher import Searcher
from nmt.search.windows import WINDOW_LINES, cut_into_windows
from nmt.translation.capitals import CapitalsTransform
from nmt.translation.context import ContextTransform
from nmt.translation.document import join, split_lines
from nmt.translation.edges import EdgesTransform
from nmt.translation.line import EncodedLine, Line, Translation, Warn, copy_of, encode, one_line
from nmt.translation.memory_matches import FoundMatches, MemoryTransform
from nmt.translation.message_texts import MessageTexts
from nmt.translation.minimum_bayes_risk import choose_by_risk
from nmt.translation.placeholders import without_tags
from nmt.translation.protected import ProtectionTransform
from nmt.translation.ray_pool import RayCluster, RayPool
from nmt.translation.request import (
    FinishingTransform,
    NBestLists,
    TranslationRequest,
    check_request,
)
from nmt.translation.terminology import TerminologyTransform


@dataclass
class _Window:
    """Lines that are read together, and the translations of those already searched."""

    read: Sequence[Line]
    """the lines as they were read, with the lengths of their tags"""
    exact: dict[int, Match]
    """pairs of a memory whose targets are the translations of lines, by the index of the line"""
    messages: MessageTexts | None
    """the lines, and after them the texts in their messages; None: none were looked for"""
    without_edges: list[Line]
    """the lines and the texts in their messages, after `EdgesTransform.cut`"""
    encoded: list[EncodedLine]
    """the lines, or their sentences, as they are searched"""
    counts: list[int]
    """how many encoded lines each line has become"""
    translations: NBestLists
    """the translations of each encoded line; empty until its batch is searched"""
    batches: deque[list[int]]
    """the encoded lines that are searched together, as indices, without those already searched"""
    reported: int = 0
    """with `document`: how many lines count as done already"""

    @property
    def count(self) -> int:
        """How many lines were read."""
        return len(self.read)


class Pipeline:
    """Translates lines; use it in a `with` statement, which ends its processes."""

    def __init__(
        self,
        searcher: Searcher,
        request: TranslationRequest,
        processes: int = 1,
        cluster: RayCluster | None = None,
    ) -> None:
        """Build the transforms for a request.

        With `processes` 1, this process translates; with n > 1, n other processes do, each with one
        thread. With a `cluster`, its machines translate instead.

        Raises:
            ConfigError: the request contradicts itself, or the beam is too small or too wide.
            NmtError: the cluster cannot be used.
        """
        check_request(request, searcher)
        self._searcher, self._request, self._processes = searcher, request, processes
        loaded, terms = searcher.loaded, request.terminology
        data, self._source = loaded.config.data, loaded.tokenizer.source
        self._edges = EdgesTransform(data.source_language, terms)
        self._protection = ProtectionTransform(searcher, request.protected, terms)
        self._capitals = CapitalsTransform(data, self._source, terms)
        self._terminology = TerminologyTransform(searcher, terms)
        self._context = ContextTransform(searcher)
        self._memory = MemoryTransform(
            searcher, request.memory, terms, request.alignments, bool(request.adapt)
        )
        self._requested = list(_requested_transforms(searcher, request))
        # minimum Bayes risk leaves `n_best` of its candidates
        self._n_best = request.candidates if request.utilities else request.n_best
        self._pool: Pool[list[EncodedLine], NBestLists] = ProcessPool(
            self.translate_batch, processes
        )
        self._reads_ahead = processes > 1 or cluster is not None
        if cluster:
            of_batches = replace(request, memory=None)  # it has been searched by then
            compute = BatchTranslation(searcher, of_batches, searcher.native is not None)
            self._pool = RayPool(compute, cluster, loaded.device_type)

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
        """Yield the translations of each line, best first.

        With `document` a line has one, which is joined from those of its sentences.

        Up to `window_lines` lines are read at once. With one process, their translations are
        yielded before more are read; several read some windows ahead. `warn` gets a message for
        each line that is too long, `progress` the number of lines done since its last call.
        """
        read = cut_into_windows(lines, window_lines, characters=lambda line: len(line.text))
        for group in [read] if self._reads_ahead else ([window] for window in read):
            for translations in self.translate_windows(group, warn, progress):
                yield from translations

    def translate_windows(
        self,
        windows_of_lines: Iterable[Sequence[Line]],
        warn: Warn = print_warning,
        progress: Progress = lambda lines: None,
    ) -> Iterator[NBestLists]:
        """Yield for each window the translations of its lines, as `translate` does.

        A window that needs no search is yielded with the next one, or at the end. `warn` and
        `progress` are called as in `translate`.

        Raises:
            NmtError: the memory does not suffice, or a process died.
            DataError: the constraints on a line contradict each other; the message names it.
        """
        begun: deque[_Window] = deque()  # windows whose translations have not all arrived

        def tasks() -> Iterator[list[EncodedLine]]:
            for lines in windows_of_lines:
                window = self._encode_window(lines, warn)
                begun.append(window)
                for batch in list(window.batches):
                    yield [window.encoded[i] for i in batch]

        def complete_windows() -> Iterator[NBestLists]:
            while begun and not begun[0].batches:
                yield self._finish_window(begun.popleft(), progress)

        if self._processes > 1:
            # Processes that are forked after this share the model. Some commands have called it
            # already, so that an error comes before they write; a second call does nothing.
            self._searcher.load_now()
        # `map` pulls the next tasks from `tasks`, which encodes a window when the batches of the
        # last one are used up, and calls `translate_batch` for each task, in order
        for rows in self._pool.map(tasks()):
            yield from complete_windows()
            window = begun[0]
            batch = window.batches.popleft()
            for i, translations in zip(batch, rows, strict=True):
                window.translations[i] = translations
            done = sum(i < window.count for i in batch)
            if self._request.document:  # the batch's share of the sentences is one of the lines
                done = len(batch) * window.count // len(window.encoded)
                window.reported += done
            progress(done)
            yield from complete_windows()
        yield from complete_windows()
        self._context.warn_of_lost(warn)

    def _encode_window(self, lines: Sequence[Line], warn: Warn) -> _Window:
        """Take lines through the transforms on the way in, and cut them into batches."""
        messages, request = None, self._request
        if self._source.tags:
            lines = [replace(line, tag_length=self._source.tag_length(line.text)) for line in lines]
        read = lines
        found: FoundMatches = {}
        lines, exact = self._memory.take_exact(lines, found)
        if request.protected.patterns:
            messages = MessageTexts(lines, request.protected)
            lines = messages.lines
        lines = without_edges = self._edges.cut(lines)
        if request.protected.patterns or any(line.protected for line in lines):
            lines = self._protection.protect(lines)
        counts = [1] * len(lines)
        if request.document:
            marked = self._capitals.mark(lines)
            groups = split_lines(self._source, self._edges.language, marked, warn)
            counts = [len(group) for group in groups]
            lines = [sentence for group in groups for sentence in group]
        encoded = encode(self._source, self._capitals.lower(lines), warn, self._searcher.languages)
        self._protection.replace_unknown(encoded)
        encoded = self._terminology.constrain(encoded)
        known = {i: match.target for i, match in exact.items()}
        encoded = self._context.add(read, encoded, counts, request.document, known)
        firsts = list(accumulate(counts, initial=0))  # where the sentences of each line begin
        exact_sentences = {firsts[i]: match for i, match in exact.items()}
        encoded = self._memory.append(encoded, exact_sentences, found)
        if request.adapt_document:
            encoded = self._memory.with_pairs_around(encoded, exact_sentences)
        translations, batches = self._copies(encoded), deque(self._batches(encoded))
        return _Window(read, exact, messages, without_edges, encoded, counts, translations, batches)

    def _copies(self, encoded: Sequence[EncodedLine]) -> NBestLists:
        """Return the translations of the lines that are copied; none yet for the other lines."""
        translations: NBestLists = [[] for _ in encoded]
        to_copy = [i for i, line in enumerate(encoded) if not line.ids]
        copied = [encoded[i] for i in to_copy]
        finished = self._finish(copied, [[copy_of(line)] for line in copied]) if copied else []
        for i, row in zip(to_copy, finished, strict=True):
            translations[i] = row
        return translations

    def _batches(self, encoded: Sequence[EncodedLine]) -> Iterator[list[int]]:
        """Yield the lines that are searched together, as indices.

        All lines of a batch have the same pairs to learn from.
        """
        groups: Iterable[Sequence[int]] = [range(len(encoded))]
        if self._request.document:  # the sentences may be many more than the lines
            groups = cut_into_windows(
                range(len(encoded)), WINDOW_LINES, characters=lambda i: len(encoded[i].line.text)
            )
        lengths = [len(line.searched_ids) for line in encoded]
        constraints = [line.constraints for line in encoded]
        for group in groups:
            by_pairs: dict[tuple[Match, ...], list[int]] = {}
            for i in group:
                if encoded[i].ids:
                    by_pairs.setdefault(encoded[i].pairs_to_learn, []).append(i)
            for with_same_pairs in by_pairs.values():
                yield from self._searcher.batches(with_same_pairs, lengths, constraints)

    def _finish_window(self, window: _Window, progress: Progress) -> NBestLists:
        """Return the translations of the lines as they were read."""
        translations = window.translations
        self._context.count_lost(translations)
        if self._request.document:
            progress(window.count - window.reported)
            pairs = zip(window.encoded, translations, strict=True)
            sentences = ((encoded.line, best) for encoded, (best, *_) in pairs)
            counts = zip(window.without_edges, window.counts, strict=True)
            # each line takes its next n sentences
            translations = [[join(line.text, list(islice(sentences, n)))] for line, n in counts]
        else:
            read = window.encoded[: window.count]
            progress(sum(not line.ids for line in read))  # copied, so in no batch
        translations = self._edges.put_back(window.without_edges, translations)
        if window.messages:
            translations = window.messages.put_back(translations)
        return self._memory.put_back(window.read, window.exact, translations)

    def translate_batch(self, lines: Sequence[EncodedLine]) -> NBestLists:
        """Return the translations of each line: search all in one batch, apply the transforms."""
        lines = list(lines)
        pairs = lines[0].pairs_to_learn  # all lines of a batch have the same
        if self._request.adapt and pairs:
            searcher = self._request.adapt(self._searcher, pairs)
            request = replace(self._request, adapt=None, adapt_document=False)
            return Pipeline(searcher, request).translate_batch(lines)
        decoded = self._search(lines)
        has_parts = any(encoded.line.parts for encoded in lines)
        if has_parts and (again := self._protection.lines_to_search_again(lines, decoded)):
            encoded = encode(
                self._source, list(again.values()), lambda _: None, self._searcher.languages
            )
            changed = zip(again, self._terminology.constrain(encoded), strict=True)
            searched = {
                i: replace(line, context=lines[i].context) for i, line in changed if line.ids
            }
            found = self._search(list(searched.values()))
            for (i, line), translations in zip(searched.items(), found, strict=True):
                lines[i], decoded[i] = line, translations
        if asking := self._terminology.lines_to_search_again(lines, decoded):
            found = self._search(list(asking.values()))
            for (i, line), translations in zip(asking.items(), found, strict=True):
                lines[i], decoded[i] = line, translations
        for i, translations in enumerate(decoded):
            if not translations:  # all were blank
                lines[i] = EncodedLine(without_tags(lines[i].line), ids=[])
                decoded[i] = [copy_of(lines[i])]
        return self._finish(lines, decoded)

    def _search(self, lines: Sequence[EncodedLine]) -> NBestLists:
        """Return the translations of each line as the search finds them, but no blank ones.

        The search finds no empty translation, but tokens may spell white space, or nothing. A
        hypothesis of as many target tokens as the search allows is marked as truncated.
        """
        rows = []
        for line, found in zip(lines, self._context.search(lines, self._n_best), strict=True):
            hypotheses, limit = found.hypotheses, found.limit
            texts = self._searcher.loaded.tokenizer.target.decode([h.tokens for h in hypotheses])
            rows.append(
                [
                    Translation(
                        one_line(text),
                        h.score,
                        h.tokens,
                        is_truncated=len(h.tokens) >= limit,
                        lost_context=found.lost_context,
                        match=line.match,
                    )
                    for text, h in zip(texts, hypotheses, strict=True)
                    if text.strip()
                ]
            )
        return rows

    def _finish(self, lines: Sequence[EncodedLine], translations: NBestLists) -> NBestLists:
        """Take lines and their translations through the finishing transforms that concern them."""
        if any(encoded.constraints or encoded.asked_terms for encoded in lines):
            translations = self._terminology.restore(lines, translations)
        for transform in self._requested:
            translations = transform(lines, translations)
        if any(encoded.line.capitals for encoded in lines):
            translations = self._capitals.restore(lines, translations)
        if any(encoded.line.parts for encoded in lines):
            translations = self._protection.restore(lines, translations)
        if self._request.compare:
            translations = self._request.compare(lines, translations)
        return translations


@dataclass(frozen=True)
class BatchTranslation:
    """The work on one batch as a function that can be sent to another machine."""

    searcher: Searcher
    request: TranslationRequest
    is_native: bool
    """whether the C library searches on the machine that sends it"""

    @cached_property
    def _pipeline(self) -> Pipeline:
        """The pipeline, built on the machine that uses it.

        Raises:
            NmtError: this machine would search otherwise than the machine of the command.
        """
        if (self.searcher.native is not None) != self.is_native:
            kinds = ("PyTorch", "the C library")
            raise NmtError(
                f"{kinds[not self.is_native]} searches on {platform.node()}, expected "
                f"{kinds[self.is_native]} as on the machine of the command, or translations may "
                "differ; `nmt doctor` says why"
            )
        return Pipeline(self.searcher, self.request)

    def __call__(self, lines: Sequence[EncodedLine]) -> NBestLists:
        """Search all lines in one batch, and apply the finishing transforms."""
        return self._pipeline.translate_batch(lines)


def _requested_transforms(
    searcher: Searcher, request: TranslationRequest
) -> Iterator[FinishingTransform]:
    """Yield the finishing transforms that settings and request ask for, those of PyTorch lazily."""
    if searcher.settings.copy_unknown:
        from nmt.translation.unknown_words import copy_unknown_words  # it imports PyTorch

        yield partial(copy_unknown_words, searcher=searcher)
    if request.utilities:
        yield partial(choose_by_risk, utilities=request.utilities, n_best=request.n_best)
    if request.alignments:
        from nmt.translation.aligner import align_requested

        yield partial(align_requested, searcher=searcher)
