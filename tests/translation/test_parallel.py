"""However many processes translate, the translations are the same, and in order."""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch

from nmt.config import DecodingConfig
from nmt.errors import CheckpointError, DataError, NmtError
from nmt.run_directory import LoadedModel
from nmt.search.sampling import Sampling
from nmt.translation import parallel as parallel_module
from nmt.translation import translator as translator_module
from nmt.translation.aligner import AligningTranslator
from nmt.translation.document import DocumentTranslator, LineTranslator
from nmt.translation.line import Line, numbered
from nmt.translation.minimum_bayes_risk import BayesRiskTranslator
from nmt.translation.parallel import ParallelTranslator
from nmt.translation.terminology import Terminology
from nmt.translation.translator import Translation, Translator

LINES = [
    *("a small dog", "", "ein kleiner Hund 😀", "   ", "</s> <unk>", "x" * 40, ".", "\x00"),
    *("A dog. A cat! Yes, e.g. two." * n for n in range(1, 4)),
    *(f"a small dog {n} " * (n % 5) for n in range(14)),
]


def utilities(texts: Any) -> list[list[float]]:
    return [[float(len(set(a) & set(b))) for b in texts] for a in texts]


def beam(run: LoadedModel) -> tuple[LineTranslator, Translator]:
    translator = Translator(run, SETTINGS)
    return translator, translator


def bfloat16(run: LoadedModel) -> tuple[LineTranslator, Translator]:
    translator = Translator(run, SETTINGS, "bf16")
    return translator, translator


def int8(run: LoadedModel) -> tuple[LineTranslator, Translator]:
    translator = Translator(run, SETTINGS, "int8")
    return translator, translator


def greedy(run: LoadedModel) -> tuple[LineTranslator, Translator]:
    translator = Translator(run, SETTINGS.model_copy(update={"beam_size": 1}))
    return translator, translator


def sampled(run: LoadedModel) -> tuple[LineTranslator, Translator]:
    translator = Translator(run, SETTINGS, sampling=Sampling(seed=3))
    return translator, translator


def compared_and_aligned(run: LoadedModel) -> tuple[LineTranslator, Translator]:
    translator = Translator(run, SETTINGS)
    return AligningTranslator(translator, BayesRiskTranslator(translator, utilities, 3)), translator


def with_terms(run: LoadedModel) -> tuple[LineTranslator, Translator]:
    asked = Terminology.of({"cat": "Mia"}, forbidden=["a"])
    translator = Translator(run, SETTINGS, terminology=asked)
    return AligningTranslator(translator), translator


SETTINGS = DecodingConfig(beam_size=3, max_length_offset=5, batch_tokens=128)
KINDS = [beam, bfloat16, int8, greedy, sampled, compared_and_aligned, with_terms]


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_processes_gives_the_same(
    random_run: LoadedModel, kind: Callable[[LoadedModel], tuple[LineTranslator, Translator]]
) -> None:
    chosen, translator = kind(random_run)
    with ParallelTranslator(chosen, translator) as alone:
        expected = list(alone.alternatives(numbered(LINES), 1, 10))
    assert len(expected) == len(LINES)
    if chosen is translator:
        assert expected == list(translator.alternatives(numbered(LINES), 1, 10))
    for processes in (2, 5):
        with ParallelTranslator(chosen, translator, processes) as parallel:
            assert list(parallel.alternatives(numbered(LINES), 1, 10)) == expected
            assert list(parallel.alternatives(numbered(LINES), 1, 10)) == expected
    assert multiprocessing.active_children() == []


def test_documents_are_shared_as_well(random_run: LoadedModel) -> None:
    translator = Translator(random_run, SETTINGS, sampling=Sampling(seed=3))
    expected = list(DocumentTranslator(random_run, translator).alternatives(numbered(LINES), 1, 4))
    for processes in (1, 3):
        with ParallelTranslator(translator, translator, processes) as parallel:
            document = DocumentTranslator(random_run, parallel)
            assert list(document.alternatives(numbered(LINES), 1, 4)) == expected


@pytest.mark.parametrize("processes", [1, 3])
def test_what_single_lines_ask_for_goes_where_they_go(
    random_run: LoadedModel, processes: int
) -> None:
    translator = Translator(random_run, SETTINGS)
    lines = [
        Line(i, text, Terminology.of(prefix=f"{i} ") if i % 3 else None)
        for i, text in enumerate(LINES)
    ]
    expected = list(translator.alternatives(lines, 1, 10))
    with ParallelTranslator(translator, translator, processes) as parallel:
        assert list(parallel.alternatives(iter(lines), 1, 10)) == expected
    begun = [best.text.startswith(f"{i} ") for i, [best] in enumerate(expected)]
    assert begun == [bool(line.terminology and line.text.strip()) for line in lines]


def test_a_stream_can_be_gone_on_with_at_any_window(random_run: LoadedModel) -> None:
    translator = Translator(random_run, SETTINGS, sampling=Sampling(seed=3))
    with ParallelTranslator(translator, translator, 2) as parallel:
        whole = list(parallel.alternatives(numbered(LINES), 2, 5))
        rest = list(parallel.alternatives(numbered(LINES[10:], 11), 2, 5))
    assert whole[10:] == rest


@pytest.mark.parametrize("processes", [1, 3])
def test_warnings_name_their_lines_and_progress_counts_every_line(
    random_run: LoadedModel, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    monkeypatch.setattr(translator_module, "MAX_SOURCE_TOKENS", 30)
    monkeypatch.setattr(parallel_module, "MAX_SOURCE_TOKENS", 30)
    translator = Translator(random_run, SETTINGS)
    warnings: list[str] = []
    told: list[int] = []
    with ParallelTranslator(translator, translator, processes) as parallel:
        list(parallel.alternatives(numbered(LINES, 101), 1, 8, warnings.append, told.append))
    long = [101 + i for i, line in enumerate(LINES) if len(line) > 32]
    named = sorted(int(warning.split()[1]) for warning in warnings)
    assert set(long) <= set(named) and len(set(named)) == len(named)
    assert sum(told) == len(LINES)


def test_one_process_answers_each_window_before_it_reads_the_next(random_run: LoadedModel) -> None:
    translator = Translator(random_run, SETTINGS)
    answers: list[object] = []

    def texts() -> Iterator[str]:
        yield "a"
        assert len(answers) == 1
        yield "b"

    with ParallelTranslator(translator, translator) as parallel:
        for found in parallel.alternatives(numbered(texts()), 1, 1):
            answers.append(found)
    assert len(answers) == 2


@pytest.mark.parametrize("processes", [1, 2])
def test_what_comes_before_a_line_that_cannot_be_read_is_translated(
    random_run: LoadedModel, processes: int
) -> None:
    def texts() -> Iterator[str]:
        yield from LINES[:10]
        raise DataError("line 11")

    translator = Translator(random_run, SETTINGS)
    found = []
    with (
        pytest.raises(DataError, match="line 11"),
        ParallelTranslator(translator, translator, processes) as parallel,
    ):
        for translation in parallel.alternatives(numbered(texts()), 1, 5):
            found.append(translation)
    assert found == list(translator.alternatives(numbered(LINES[:10]), 1, 5))


@pytest.mark.parametrize("processes", [1, 2])
def test_weights_that_are_not_numbers_are_one_sentence(
    random_run: LoadedModel, processes: int
) -> None:
    weight = random_run.model.output_embedding.weight
    before = weight.detach().clone()
    try:
        with torch.no_grad():
            weight.fill_(float("nan"))
        translator = Translator(random_run, SETTINGS)
        with (
            pytest.raises(CheckpointError, match="not numbers"),
            ParallelTranslator(translator, translator, processes) as parallel,
        ):
            list(parallel.alternatives(numbered(LINES), 1))
    finally:
        with torch.no_grad():
            weight.copy_(before)


def test_weights_are_made_ready_once_and_shared(
    random_run: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    ready = translator_module.prepare_for_inference
    monkeypatch.setattr(
        translator_module,
        "prepare_for_inference",
        lambda model, kind: (made.append(kind), ready(model, kind))[1],
    )
    translator = Translator(random_run, SETTINGS)
    with ParallelTranslator(translator, translator, 2) as parallel:
        next(parallel.alternatives(numbered(LINES), 1))
        assert made == ["fp32"]  # and none of the processes that have begun adds its own
    assert translator.model is translator.model


class Hungry:
    """Asks for more memory than there is."""

    def alternatives(self, lines: Iterable[Line], *_: Any) -> Iterator[list[Translation]]:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried ...")
        yield []


@pytest.mark.parametrize("processes", [1, 2])
def test_memory_that_does_not_suffice_is_one_sentence(
    random_run: LoadedModel, processes: int
) -> None:
    with (
        pytest.raises(NmtError, match="a lower --batch-tokens than 128, or let fewer processes"),
        ParallelTranslator(Hungry(), Translator(random_run, SETTINGS), processes) as parallel,
    ):
        list(parallel.alternatives(numbered(LINES), 1))
