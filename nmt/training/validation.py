"""Validation: the loss on sentences that are not in the training data, and BLEU or chrF.

Each validation also writes translations of the first sentences into `translations` in the run
directory, such as `step-00000250.txt`. Of a long run, at most `KEPT_EXAMPLES` of these files stay.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from nmt.data.fuzzy_repair import NearPair
from nmt.data.language_tags import LanguageTags
from nmt.data.text.list_marks import inner_span
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.batches import micro_batches
from nmt.data.tokens.token_store import TokenStore
from nmt.evaluation.metrics import METRIC_NAMES, bleu, bleu_tokenizer, chrf_metric
from nmt.files import write_atomically
from nmt.memory.match import Match
from nmt.recipe.config import SEVERAL_LANGUAGES
from nmt.run.model import LoadedModel
from nmt.training.lora import merged
from nmt.training.prepare import prepare_for_training
from nmt.translation.line import EncodedLine, Terminology, numbered_lines
from nmt.translation.memory_matches import MemoryTransform, MemoryUse
from nmt.translation.request import TranslationRequest
from nmt.translation.translator import Translator

BATCH_TOKENS = 4096  # padded tokens per side of a batch for the loss
EXAMPLES = 8
"""number of example translations: those of the first sentences of the validation set"""
KEPT_EXAMPLES = 33
"""most files of example translations in a run: that of the last validation, and 32 before it"""
_SHOWN_PARTS = 6  # texts and tags whose scores a line of the log has
_EXAMPLE = "source     {}\nreference  {}\nmodel      {}\n"


@dataclass(frozen=True)
class Validation:
    """The result of one validation."""

    loss: float
    """cross-entropy without smoothing, nats per target token"""
    quality: dict[str, float]
    """one score, {"bleu": …} or {"chrf": …}; empty if nothing was translated"""
    translations: list[str]
    """of all validation sentences, in their order; empty if nothing was translated"""
    quality_of_parts: dict[str, float] = field(default_factory=dict)
    """the score of each text if there are several, and of the sentences with the same tags, unless
    they are one of these texts: {"bleu news": …, "bleu >>fr<<": …}"""

    @property
    def score(self) -> float:
        """The number by which weights are chosen, higher is better: quality, or else -loss."""
        only_score = next(iter(self.quality.values()), None)  # None: `quality` is empty
        return -self.loss if only_score is None else only_score

    def figures(self) -> dict[str, float]:
        """Return loss and quality by name, for records and files."""
        return {"loss": self.loss, **self.quality, **self.quality_of_parts}

    def __str__(self) -> str:
        """Return loss and scores as a line of the log; of many parts, the worst and the best."""
        scores = (f", {METRIC_NAMES[name]} {score:.2f}" for name, score in self.quality.items())
        of_parts = [  # without the name of the metric, as in "news 27.31"
            f"{name.partition(' ')[2]} {score:.2f}" for name, score in self.quality_of_parts.items()
        ]
        if len(of_parts) > _SHOWN_PARTS:  # metrics.jsonl has them all
            worst, *_, best = sorted(zip(self.quality_of_parts.values(), of_parts, strict=True))
            of_parts = [f"{len(of_parts)} texts and tags, from {worst[1]} to {best[1]}"]
        parts = f" ({', '.join(of_parts)})" if of_parts else ""
        return f"validation loss {self.loss:.3f} nats/token" + "".join(scores) + parts


@dataclass(frozen=True, slots=True)
class ExampleTranslation:
    """A validation sentence and its translation by the model of one step."""

    source: str
    reference: str
    translation: str


@dataclass(frozen=True)
class ValidationText:
    """One of the texts of data.validation."""

    label: str
    pairs: Sequence[SentencePair]
    """with tags, if the model has several languages"""
    target_language: str
    """the code of the language of the targets, which decides how BLEU divides them into words"""


@dataclass(frozen=True)
class PreparedMatches:
    """The training pairs that are nearest to validation texts, as a memory would find them."""

    matches: Mapping[str, Sequence[NearPair]]
    """those of each text, without what stands before and after its words"""
    language: str
    """the code of the source language"""

    def search(
        self, text: str, count: int = 1, minimum: float = 0.5, before: str | None = None
    ) -> list[Match]:
        """Return the matches of a text, which were limited when they were prepared."""
        near = self.matches.get(text[slice(*inner_span(text, self.language))], ())
        return [Match(pair.source, pair.target, pair.score, identity=0) for pair in near]


class Validator:
    """Validates the model of a run on all pairs of some texts, which are encoded once."""

    def __init__(
        self,
        texts: Sequence[ValidationText],
        loaded: LoadedModel,
        precision: str,
        memory: MemoryUse | None = None,
    ) -> None:
        """Take the texts and the model; `memory` has matches, for a model with data.memory."""
        self.pairs = pairs = [pair for text in texts for pair in text.pairs]
        self._texts = texts
        self._languages = [text.target_language for text in texts for _ in text.pairs]
        self.loaded = loaded
        self.precision = precision
        training = loaded.config.training
        self._objective = prepare_for_training(loaded.model, training, precision).eval()
        self._request = TranslationRequest(memory=memory)
        sources = [pair.source for pair in pairs]
        tokenizer = loaded.tokenizer
        source_ids, target_ids = LanguageTags(loaded.config.data, tokenizer).of_pairs(
            tokenizer.source.encode(sources), tokenizer.target.encode([p.target for p in pairs])
        )
        rows = zip(numbered_lines(sources), source_ids, strict=True)
        searcher = Translator(loaded).searcher
        matches = MemoryTransform(searcher, memory, Terminology(), alignments=False)
        encoded = TokenStore.of(
            [line.ids for line in matches.append([EncodedLine(*row) for row in rows], {}, {})],
            target_ids,
        )
        lengths = encoded.source.lengths, encoded.target.lengths
        batches = micro_batches(np.arange(len(pairs)), *lengths, BATCH_TOKENS)
        self.batches: list[Batch] = [collate(encoded, rows) for rows in batches]

    def validate(self, beam_size: int = 1) -> Validation:
        """Compute the loss; translate and score, unless `validation_metric` is the loss."""
        metric = self.loaded.config.training.validation_metric
        loss = self._loss()
        translations: list[str] = []
        quality: dict[str, float] = {}
        of_parts: dict[str, float] = {}
        if metric != "loss" and math.isfinite(loss):  # else the run has diverged
            settings = self.loaded.config.decoding.model_copy(update={"beam_size": beam_size})
            loaded = replace(self.loaded, weights=merged(self.loaded.model))
            translator = Translator(loaded, settings, self.precision)
            sources = (pair.source for pair in self.pairs)
            rows = translator.pipeline(self._request).translate(numbered_lines(sources))
            translations = [best.text for best, *_ in rows]
            quality[metric] = self._score(metric, range(len(self.pairs)), translations)
            of_parts = {
                f"{metric} {part}": self._score(metric, indices, translations)
                for part, indices in self._parts().items()
            }
        return Validation(loss, quality, translations, of_parts)

    def examples(self, result: Validation) -> list[ExampleTranslation]:
        """Return the first `EXAMPLES` sentences with translations; none if none were translated."""
        examples = zip(self.pairs[:EXAMPLES], result.translations[:EXAMPLES], strict=False)
        return [ExampleTranslation(pair.source, pair.target, text) for pair, text in examples]

    @torch.inference_mode()
    def _loss(self) -> float:
        """Return the cross-entropy of the validation pairs, in nats per target token."""
        total, tokens = 0.0, 0
        for batch in self.batches:
            total += self._objective(batch.to(self._objective.device)).cross_entropy.item()
            tokens += batch.tokens
        return total / tokens

    def _parts(self) -> dict[str, Sequence[int]]:
        """Return the indices of the sentences of each text, if several, and of those with tags.

        Tags whose sentences are those of one text would have its score and are left out.
        """
        parts: dict[str, Sequence[int]] = {}
        if len(self._texts) > 1:
            start = 0
            for validation_text in self._texts:
                end = start + len(validation_text.pairs)
                parts[validation_text.label] = range(start, end)
                start = end
        by_tags: dict[str, list[int]] = {}
        for i, pair in enumerate(self.pairs):
            tags = pair.source[: self.loaded.tokenizer.source.tag_length(pair.source)].rstrip()
            by_tags.setdefault(tags, []).append(i)
        if any(by_tags):
            of_texts = [list(indices) for indices in parts.values()]
            parts |= {tags: group for tags, group in by_tags.items() if group not in of_texts}
        return parts

    def _score(self, metric: str, indices: Sequence[int], translations: Sequence[str]) -> float:
        """Return the score by the metric bleu or chrf of the sentences with these indices."""
        references = [self.pairs[i].target for i in indices]
        translations = [translations[i] for i in indices]
        if metric == "chrf":
            return chrf_metric().score(translations, references, confidence=False).value
        languages = {self._languages[i] for i in indices}
        # several languages are divided into words as European ones are, like a test set of several
        language = languages.pop() if len(languages) == 1 else SEVERAL_LANGUAGES
        tokenize = bleu_tokenizer(language, self.loaded.config.data.tokenized, references)
        return bleu(translations, references, tokenize, confidence=False).value


def write_examples(folder: Path, step: int, examples: Sequence[ExampleTranslation]) -> None:
    """Write the examples of a validation into the file of its step in `folder`, if there are any.

    Raises:
        OSError: the file cannot be written; no incomplete file remains.
    """
    if not examples:
        return
    folder.mkdir(exist_ok=True)
    text = "\n".join(_EXAMPLE.format(*astuple(example)) for example in examples)
    write_atomically(folder / f"step-{step:08d}.txt", text)


def read_examples(folder: Path) -> dict[int, list[ExampleTranslation]]:
    """Return the examples of all validations by step, ascending; skip damaged files."""
    # the template of the file as a pattern: each of its three fields is a rest of a line
    pattern = re.compile(_EXAMPLE.format("(.*)", "(.*)", "(.*)"))
    examples = {}
    for step, path in _example_files(folder):
        try:
            # not read_text, which would turn a carriage return into a line feed
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if blocks := pattern.findall(text):
            examples[step] = [ExampleTranslation(*block) for block in blocks]
    return examples


def delete_examples_after(folder: Path, step: int) -> None:
    """Delete the example files of steps after `step`, which a resumed run validates again."""
    for file_step, path in _example_files(folder):
        if file_step > step:
            path.unlink(missing_ok=True)


def thin_out_examples(folder: Path, step: int, validate_every: int) -> None:
    """Delete example files so that the others are evenly spread over the run up to `step`.

    Those at multiples of `validate_every` times 1, 2, 4 and so on stay, whichever of these numbers
    leaves at most `KEPT_EXAMPLES`; so does that of `step`. What stays does not depend on stops.
    """
    interval = validate_every
    while step // interval >= KEPT_EXAMPLES:
        interval *= 2
    for file_step, path in _example_files(folder):
        if file_step % interval and file_step != step:
            path.unlink(missing_ok=True)


def _example_files(folder: Path) -> list[tuple[int, Path]]:
    """Return (step, path) of each file with example translations, by step."""
    numbers = ((path.stem.removeprefix("step-"), path) for path in folder.glob("step-*.txt"))
    return sorted((int(number), path) for number, path in numbers if number.isdecimal())
