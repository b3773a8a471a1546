"""However many processes translate, the translations are the same, and in order."""

import multiprocessing
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch

from nmt.errors import CheckpointError, DataError, NmtError
from nmt.evaluation.metrics import sentence_utilities
from nmt.inference.prepare import prepare_for_inference
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig, Sampling
from nmt.run.model import LoadedModel
from nmt.search import torch_search
from nmt.translation import line as line_module
from nmt.translation.line import Line, Terminology, numbered_lines
from nmt.translation.request import TranslationRequest
from nmt.translation.translator import Translator

LINES = [
    *("a small dog", "", "ein kleiner Hund 😀", "   ", "</s> <unk>", "x" * 40, ".", "\x00"),
    *("A dog. A cat! Yes, e.g. two." * n for n in range(1, 4)),
    *(f"a small dog {n} " * (n % 5) for n in range(14)),
]
SETTINGS = DecodingConfig(beam_size=3, max_length_offset=5, batch_tokens=128)
SAMPLING = Sampling(seed=3)
CHOSEN = TranslationRequest(
    utilities=partial(sentence_utilities, "chrf"), candidates=3, alignments=True
)
KINDS: dict[str, tuple[dict[str, Any], TranslationRequest]] = {
    "beam": ({}, TranslationRequest()),
    "bf16": ({"precision": "bf16"}, TranslationRequest()),
    "int8": ({"precision": "int8"}, TranslationRequest()),
    "greedy": ({"settings": SETTINGS.model_copy(update={"beam_size": 1})}, TranslationRequest()),
    "sampled": ({"sampling": SAMPLING}, TranslationRequest(n_best=2)),
    "compared and aligned": ({}, CHOSEN),
    "documents": ({"sampling": SAMPLING}, TranslationRequest(document=True)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_processes_gives_the_same(random_run: LoadedModel, kind: str) -> None:
    """And a stream can be resumed at any window."""
    options, request = KINDS[kind]
    translator = Translator(random_run, **({"settings": SETTINGS} | options))
    expected = list(translator.pipeline(request).translate(numbered_lines(LINES), 10))
    assert len(expected) == len(LINES)
    with translator.pipeline(request, 3) as pipeline:
        assert list(pipeline.translate(numbered_lines(LINES), 10)) == expected
        assert list(pipeline.translate(numbered_lines(LINES[10:], 11), 10)) == expected[10:]
    assert multiprocessing.active_children() == []


def test_the_constraints_of_single_lines_reach_their_translations(random_run: LoadedModel) -> None:
    """And so do those of all lines, in any number of processes."""
    translator = Translator(random_run, SETTINGS)
    request = TranslationRequest(
        terminology=Terminology.of({"cat": "Mia"}, forbidden=["small"]), alignments=True
    )
    lines = [
        Line(i, text, Terminology.of(prefix=f"{i} ") if i % 3 else None)
        for i, text in enumerate(LINES[:14])
    ]
    expected = list(translator.pipeline(request).translate(lines, 10))
    with translator.pipeline(request, 3) as pipeline:
        assert list(pipeline.translate(iter(lines), 10)) == expected
    begun = [best.text.startswith(f"{i} ") for i, [best] in enumerate(expected)]
    assert begun == [bool(line.terminology and line.text.strip()) for line in lines]
    assert all(
        "Mia" in best.text
        for line, [best] in zip(lines, expected, strict=True)
        if "cat" in line.text
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_windows_of_blank_lines_come_back_in_their_place(
    random_run: LoadedModel, processes: int
) -> None:
    texts = ["", " ", "a", "", "", "b", " ", ""]
    done: list[int] = []
    with Translator(random_run, SETTINGS).pipeline(processes=processes) as pipeline:
        found = list(pipeline.translate(numbered_lines(texts), 2, progress=done.append))
    assert [bool(best.text) for best, *_ in found] == [bool(text.strip()) for text in texts]
    assert sum(done) == len(texts)


@pytest.mark.parametrize("processes", [1, 3])
def test_warnings_name_their_lines_and_progress_counts_every_line(
    random_run: LoadedModel, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    monkeypatch.setattr(line_module, "MAX_SOURCE_TOKENS", 30)
    translator = Translator(random_run, SETTINGS)
    warnings: list[str] = []
    counted: list[int] = []
    with translator.pipeline(processes=processes) as pipeline:
        list(pipeline.translate(numbered_lines(LINES, 101), 8, warnings.append, counted.append))
    long = [101 + i for i, line in enumerate(LINES) if len(line) > 32]
    named = sorted(int(warning.split()[1]) for warning in warnings)
    assert set(long) <= set(named) and len(set(named)) == len(named)
    assert sum(counted) == len(LINES)


@pytest.mark.parametrize("processes", [1, 2])
def test_lines_before_one_that_cannot_be_read_are_translated(
    random_run: LoadedModel, processes: int
) -> None:
    def texts() -> Iterator[str]:
        yield from LINES[:10]
        raise DataError("line 11")

    translator = Translator(random_run, SETTINGS)
    found = []
    with (
        pytest.raises(DataError, match="line 11"),
        translator.pipeline(processes=processes) as pipeline,
    ):
        for translation in pipeline.translate(numbered_lines(texts()), 5):
            found.append(translation)
    assert found == list(translator.pipeline().translate(numbered_lines(LINES[:10]), 5))


def damage(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    nan = torch.full_like(model.output_embedding.weight, float("nan"))
    monkeypatch.setattr(model.output_embedding.weight, "data", nan)


def exhaust(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    def hungry(*_: Any) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried ...")

    monkeypatch.setattr(torch_search, "beam_search", hungry)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    ("fail", "kind", "message"),
    [
        (damage, CheckpointError, "not numbers"),
        (
            exhaust,
            NmtError,
            "lower `batch_tokens` .decoding.batch_tokens., now 128, or let fewer processes",
        ),
    ],
)
def test_a_failure_is_one_sentence(
    pytorch_searches: None,
    random_run: LoadedModel,
    monkeypatch: pytest.MonkeyPatch,
    processes: int,
    fail: Any,
    kind: type[NmtError],
    message: str,
) -> None:
    fail(random_run.model, monkeypatch)
    with (
        pytest.raises(kind, match=message),
        Translator(random_run, SETTINGS).pipeline(processes=processes) as pipeline,
    ):
        list(pipeline.translate(numbered_lines(LINES)))


def test_weights_are_prepared_once_and_shared(
    pytorch_searches: None, random_run: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def recorded(model: Transformer, precision: str) -> Transformer:
        made.append(precision)
        return prepare_for_inference(model, precision)

    monkeypatch.setattr(torch_search, "prepare_for_inference", recorded)
    translator = Translator(random_run, SETTINGS)
    with translator.pipeline(processes=2) as pipeline:
        next(pipeline.translate(numbered_lines(LINES)))
        assert made == ["fp32"]  # and none of the processes that have begun adds its own
    assert translator.searcher.torch.model is translator.searcher.torch.model
