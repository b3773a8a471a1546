from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config import DecodingConfig
from nmt.model.encoder import Encoder
from nmt.run_directory import LoadedModel
from nmt.search import windows as windows_module
from nmt.search.sampling import Sampling
from nmt.translation import encoding
from nmt.translation.encoding import MAX_SOURCE_TOKENS
from nmt.translation.line import Translation, numbered
from nmt.translation.terminology import Terminology
from nmt.translation.translator import TranslationRequest, Translator

LINES = [
    "a small dog",
    "",
    "ein kleiner Hund 😀👩‍👩‍👧",
    "   ",
    "\u2028",
    "a\u2028b\x0b\x0c\x85\x1cc",
    "NUL \x00 inside",
    "</s>",
    "<s> <unk> <pad> </s> a",
    "שלום \u202eabc\u202c e\u0301",
    "x" * 300,
    ".",
]
BLANK = {1, 3, 4}


def texts_of(translations: list[Translation]) -> list[str]:
    return [translation.text for translation in translations]


@pytest.mark.parametrize("batch_tokens", [1, 64, 4096])
@pytest.mark.parametrize("window_lines", [1, 5, 2000])
def test_lines_come_back_one_for_one_and_in_order(
    copying_run: LoadedModel, batch_tokens: int, window_lines: int
) -> None:
    translator = Translator(copying_run, DecodingConfig(batch_tokens=batch_tokens))
    found = texts_of(list(translator.translate(LINES, window_lines)))
    assert found == ["" if i in BLANK else line for i, line in enumerate(LINES)]


def test_no_lines_give_no_translations(copying_run: LoadedModel) -> None:
    assert list(Translator(copying_run).translate([])) == []


def test_line_ends_inside_a_translation_become_spaces(copying_run: LoadedModel) -> None:
    found = texts_of(list(Translator(copying_run).translate(["a\nb", "a\r\nb\r", "ab"])))
    assert found == ["a b", "a  b ", "ab"]


def test_batches_hold_at_most_batch_tokens(copying_run: LoadedModel) -> None:
    texts = ["a" * (1 + i % 90) for i in range(200)]
    list(Translator(copying_run, DecodingConfig(batch_tokens=256)).translate(texts))
    batches = copying_run.model.batches  # type: ignore[attr-defined]
    assert all(rows * longest <= 256 for rows, longest in batches)
    assert sum(rows for rows, _ in batches) == 200
    assert max(rows for rows, _ in batches) <= 16  # short sentences fill decoder rows as well


def test_too_long_a_line_is_truncated_and_named(copying_run: LoadedModel) -> None:
    warnings: list[str] = []
    texts = ["a", "", "b" * (MAX_SOURCE_TOKENS + 500), "c" * (MAX_SOURCE_TOKENS - 10)]
    settings = DecodingConfig(beam_size=1)
    for window_lines in (1, 2000):
        translations = Translator(copying_run, settings).translate(
            texts, window_lines, warn=warnings.append
        )
        found = texts_of(list(translations))
        assert found[0] == "a"
        assert found[1] == ""
        assert found[2] == "b" * len(found[2])
        assert MAX_SOURCE_TOKENS - 5 < len(found[2]) < MAX_SOURCE_TOKENS
        assert found[3] == texts[3]
    assert len(warnings) == 2
    assert all("line 3 has 152" in warning and "1024" in warning for warning in warnings)


def test_a_stream_can_be_resumed_at_any_line(
    random_run: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "MAX_SOURCE_TOKENS", 20)
    translator = Translator(random_run, sampling=Sampling(seed=3))
    pipeline = translator.pipeline(TranslationRequest(n_best=2))
    whole = list(pipeline.translate(numbered(LINES), warn=lambda warning: None))
    warnings: list[str] = []
    rest = pipeline.translate(numbered(LINES[2:], 3), warn=warnings.append)
    assert list(rest) == whole[2:]
    assert warnings[0].startswith("line 3 has") and "line 11 has" in warnings[-1]


def test_warnings_go_to_stderr_unless_told_otherwise(
    copying_run: LoadedModel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "MAX_SOURCE_TOKENS", 4)
    list(Translator(copying_run).translate(["aaaaaaaaaa"]))
    captured = capsys.readouterr()
    assert captured.err.startswith("warning: line 1 has 1")
    assert captured.out == ""


def test_a_window_closes_before_long_texts_fill_the_memory(
    copying_run: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows_module, "WINDOW_CHARACTERS", 100)
    taken = 0

    def texts() -> object:
        nonlocal taken
        for _ in range(50):
            taken += 1
            yield "a" * 30

    next(iter(Translator(copying_run).translate(texts())))  # type: ignore[arg-type]
    assert taken == 4


def test_with_windows_of_one_line_each_is_answered_before_the_next_is_read(
    copying_run: LoadedModel,
) -> None:
    answers: list[str] = []

    def texts() -> object:
        yield "a"
        assert answers == ["a"]
        yield "b"

    for translation in Translator(copying_run).translate(texts(), 1):  # type: ignore[arg-type]
        answers.append(translation.text)
    assert answers == ["a", "b"]


SYMBOLS = ["😀", " ... ", "—", "?!", "🇩🇪🇫🇷", "\u200b", "“”", "$ € %"]


@pytest.mark.parametrize("sampling", [None, Sampling(seed=3)])
def test_lines_without_letters_and_digits_are_copied(
    random_run: LoadedModel, sampling: Sampling | None
) -> None:
    translator = Translator(random_run, sampling=sampling)
    assert list(translator.translate(SYMBOLS)) == [Translation(text, 0.0) for text in SYMBOLS]
    for text in ("½", "x…", "1️⃣", "狗"):
        assert next(translator.translate([text])).tokens


def test_lines_without_letters_are_copied_in_every_form(random_run: LoadedModel) -> None:
    def utilities(texts: Any) -> list[list[float]]:
        return [[0.0] * len(texts)] * len(texts)

    translator = Translator(random_run)
    for request in (
        TranslationRequest(n_best=3),
        TranslationRequest(document=True),
        TranslationRequest(alignments=True),
        TranslationRequest(n_best=2, utilities=utilities, candidates=3),
        TranslationRequest(terminology=Terminology.of(forbidden=["Hund"])),
    ):
        found = translator.pipeline(request).translate(numbered(["😀!  😀?", "—"]))
        assert [[(t.text, t.score) for t in row] for row in found] == [
            [("😀!  😀?", 0.0)],
            [("—", 0.0)],
        ]


def test_a_line_without_letters_is_translated_if_its_copy_breaks_constraints(
    random_run: LoadedModel,
) -> None:
    def translate(**asked: Any) -> str:
        pipeline = Translator(random_run).pipeline(
            TranslationRequest(terminology=Terminology.of(**asked))
        )
        [[found]] = pipeline.translate(numbered(["— …"]))
        return found.text

    assert translate(forbidden=["…"]) != "— …"
    assert "Hund" in translate(terms=["Hund"])
    assert translate(prefix="Ein ").startswith("Ein ")
    assert translate(glossary={"dog": "Hund"}) == "— …"


def test_progress_counts_every_line_once(copying_run: LoadedModel) -> None:
    done: list[int] = []
    list(Translator(copying_run).translate(LINES, 5, progress=done.append))
    assert sum(done) == len(LINES)


def test_the_settings_default_to_the_runs_own(copying_run: LoadedModel) -> None:
    assert Translator(copying_run).settings == copying_run.config.decoding
    other = DecodingConfig(beam_size=7)
    assert Translator(copying_run, other).settings == other


def test_translations_do_not_depend_on_the_batch(random_run: LoadedModel) -> None:
    def translate(batch_tokens: int) -> list[Translation]:
        changes = {"batch_tokens": batch_tokens}
        settings = random_run.config.decoding.model_copy(update=changes)
        return list(Translator(random_run, settings).translate(LINES))

    alone, together = translate(1), translate(4096)
    assert texts_of(alone) == texts_of(together)
    for a, b in zip(alone, together, strict=True):
        assert a.score == pytest.approx(b.score, abs=1e-4)


@pytest.mark.parametrize("precision, kind", [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_bfloat16_is_used_only_when_asked_for(
    random_run: LoadedModel, precision: str, kind: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = set()
    forward = Encoder.forward

    def noted(*arguments: Any) -> Tensor:
        memory = forward(*arguments)
        kinds.add(memory.dtype)
        return memory

    monkeypatch.setattr(Encoder, "forward", noted)
    list(Translator(random_run, precision=precision).translate(["a small dog"]))
    assert kinds == {kind}
    assert {p.dtype for p in random_run.model.parameters()} == {torch.float32}
