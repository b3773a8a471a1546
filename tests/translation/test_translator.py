import pickle
from collections.abc import Iterator
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from nmt.errors import NmtError
from nmt.model.encoder import Encoder
from nmt.recipe.config import DecodingConfig, Sampling
from nmt.run.model import LoadedModel
from nmt.search import windows as windows_module
from nmt.translation import line as line_module
from nmt.translation.line import MAX_SOURCE_TOKENS, Terminology, Translation, encode, numbered_lines
from nmt.translation.pipeline import BatchTranslation
from nmt.translation.request import TranslationRequest
from nmt.translation.translator import Translator

LINES = [
    *("a small dog", "", "ein kleiner Hund 😀👩‍👩‍👧", "   ", "\u2028", "a\u2028b\x0b\x0c\x85\x1cc"),
    *("NUL \x00 inside", "</s>", "<s> <unk> <pad> </s> a", "שלום \u202eabc\u202c e\u0301"),
    *("x" * 300, "."),
]
BLANK = {1, 3, 4}


def texts_of(translations: Iterator[Translation]) -> list[str]:
    return [translation.text for translation in translations]


def test_n_best_lists_are_objects_in_the_order_of_the_score(random_run: LoadedModel) -> None:
    translator = Translator(random_run)
    rows = translator.n_best(["a small dog", "", "a"], 3, alignments=True)
    assert [len(row) for row in rows] == [3, 1, 3]
    assert [row[0].text for row in rows] == translator.translate(["a small dog", "", "a"])
    for row in (rows[0], rows[2]):
        assert sorted(row, key=lambda each: -each.score) == row
        for each in row:
            assert each.alignment and len(each.alignment.log_probabilities) >= len(each.tokens)
    with pytest.raises(NmtError, match="beam"):
        translator.n_best(["a"], 99)


def test_log_p_of_each_token_adds_up_to_the_score(random_run: LoadedModel) -> None:
    translator = Translator(random_run)
    pairs = ["a small dog", "a"], ["ein Hund", ""]
    scores = translator.target_scores(*pairs)
    assert [each.log_probability for each in scores] == translator.score(*pairs)
    assert [len(each.token_log_probabilities) for each in scores] == [len("ein Hund") + 2, 1]
    assert random_run.decode([each.tokens for each in scores]) == pairs[1]


@pytest.mark.parametrize("method", ["translations", "n_best"])
def test_one_string_is_not_read_as_its_characters(random_run: LoadedModel, method: str) -> None:
    with pytest.raises(NmtError, match="texts is one string, expected several"):
        getattr(Translator(random_run), method)("a dog")


@pytest.mark.parametrize("batch_tokens", [1, 64, 4096])
@pytest.mark.parametrize("window_lines", [1, 5, 2000])
def test_lines_come_back_one_for_one_and_in_order(
    copying_run: LoadedModel, batch_tokens: int, window_lines: int
) -> None:
    translator = Translator(copying_run, DecodingConfig(batch_tokens=batch_tokens))
    found = texts_of(translator.translations(LINES, window_lines))
    assert found == ["" if i in BLANK else line for i, line in enumerate(LINES)]
    assert list(translator.translations([])) == []


def test_a_batch_is_translated_elsewhere_as_here(random_run: LoadedModel) -> None:
    translator, request = Translator(random_run), TranslationRequest(n_best=2)
    lines = encode(
        random_run.tokenizer.source, list(numbered_lines(["a small dog", "x"])), warn=print
    )
    is_native = translator.searcher.native is not None
    sent = pickle.dumps(BatchTranslation(translator.searcher, request, is_native))
    assert pickle.loads(sent)(lines) == translator.pipeline(request).translate_batch(lines)
    with pytest.raises(
        NmtError, match=r"searches on \S+, expected .* as on the machine of the comm"
    ):
        BatchTranslation(translator.searcher, request, not is_native)(lines)


def test_line_ends_inside_a_translation_become_spaces(copying_run: LoadedModel) -> None:
    found = texts_of(Translator(copying_run).translations(["a\nb", "a\r\nb\r", "ab"]))
    assert found == ["a b", "a  b ", "ab"]


def test_batches_hold_at_most_batch_tokens(copying_run: LoadedModel) -> None:
    texts = ["a" * (1 + i % 90) for i in range(100)]
    settings = DecodingConfig(beam_size=1, batch_tokens=256)
    list(Translator(copying_run, settings).translations(texts))
    batches = cast(Any, copying_run.model).batches
    assert all(rows * longest <= 256 for rows, longest in batches)
    assert sum(rows for rows, _ in batches) == 100
    assert max(rows for rows, _ in batches) <= 16  # short sentences fill decoder rows as well


@pytest.mark.parametrize("window_lines", [1, 2000])
def test_too_long_a_line_is_truncated_and_named(
    copying_run: LoadedModel, window_lines: int
) -> None:
    warnings: list[str] = []
    texts = ["a", "", "b" * (MAX_SOURCE_TOKENS + 500), "c" * (MAX_SOURCE_TOKENS - 10)]
    translator = Translator(copying_run, DecodingConfig(beam_size=1))
    found = texts_of(translator.translations(texts, window_lines, warn=warnings.append))
    assert [*found[:2], found[3]] == [*texts[:2], texts[3]]
    assert found[2] == "b" * len(found[2])
    assert MAX_SOURCE_TOKENS - 5 < len(found[2]) < MAX_SOURCE_TOKENS
    (warning,) = warnings
    assert "line 3 has 152" in warning and "1024" in warning


def test_warnings_go_to_stderr_by_default(
    copying_run: LoadedModel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_module, "MAX_SOURCE_TOKENS", 4)
    list(Translator(copying_run).translations(["aaaaaaaaaa"]))
    captured = capsys.readouterr()
    assert captured.err.startswith("warning: line 1 has 1")
    assert captured.out == ""


def test_a_window_closes_before_long_texts_fill_the_memory(
    copying_run: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows_module, "WINDOW_CHARACTERS", 100)
    texts = iter(["a" * 30] * 50)
    next(Translator(copying_run).translations(texts))
    assert len(list(texts)) == 46


NO_LETTERS = [
    *("😀", " ... ", "—", "?!", "🇩🇪🇫🇷", "\u200b", "“”", "$ € %", "😀!  😀?", "1️⃣", ":-)", "½"),
    *(
        "5",
        "2024",
        "50%",
        "50 %",
        "1/2",
        "12.5",
        "1,000.00",
        "£5.00",
        "☎ 555-0100",
        "٢٠٢٤",
        "1. 2.",
    ),
    *("10:30", "2024-11-28", "+49 30 123", "3 × 4 = 12", "20°", "#1", "§ 5", "- 5", "* 1950"),
]


@pytest.mark.parametrize("sampling", [None, Sampling(seed=3)])
def test_lines_without_letters_are_copied(
    random_run: LoadedModel, sampling: Sampling | None
) -> None:
    translator = Translator(random_run, sampling=sampling)
    copies = [Translation(text, 0.0) for text in NO_LETTERS]
    assert list(translator.translations(NO_LETTERS)) == copies
    for text in ("5 km", "x…", "1st", "狗"):
        assert next(translator.translations([text])).tokens


@pytest.mark.parametrize(
    "asked",
    [
        TranslationRequest(n_best=3),
        TranslationRequest(document=True),
        TranslationRequest(alignments=True),
        TranslationRequest(n_best=2, utilities=lambda texts: [[0.0]], candidates=3),
        TranslationRequest(terminology=Terminology.of(forbidden=["Hund"])),
    ],
)
def test_lines_without_letters_are_copied_in_every_form(
    random_run: LoadedModel, asked: TranslationRequest
) -> None:
    found = Translator(random_run).pipeline(asked).translate(numbered_lines(NO_LETTERS))
    assert [[(t.text, t.score) for t in row] for row in found] == [[(s, 0.0)] for s in NO_LETTERS]


def test_a_line_without_letters_is_translated_if_its_copy_breaks_constraints(
    random_run: LoadedModel,
) -> None:
    def translate(**asked: Any) -> str:
        request = TranslationRequest(terminology=Terminology.of(**asked))
        [[found]] = Translator(random_run).pipeline(request).translate(numbered_lines(["— …"]))
        return found.text

    assert translate(forbidden=["…"]) != "— …"
    assert "Hund" in translate(terms=["Hund"])
    assert translate(prefix="Ein ").startswith("Ein ")
    assert translate(glossary={"dog": "Hund"}) == "— …"


def test_the_settings_default_to_the_runs_own(copying_run: LoadedModel) -> None:
    assert Translator(copying_run).settings == copying_run.config.decoding
    other = DecodingConfig(beam_size=7)
    assert Translator(copying_run, other).settings == other


def test_translations_do_not_depend_on_the_batch(random_run: LoadedModel) -> None:
    def translate(batch_tokens: int) -> Iterator[Translation]:
        changes = {"batch_tokens": batch_tokens}
        settings = random_run.config.decoding.model_copy(update=changes)
        return Translator(random_run, settings).translations(LINES)

    for alone, together in zip(translate(1), translate(4096), strict=True):
        assert alone.text == together.text
        assert alone.score == pytest.approx(together.score, abs=1e-4)


@pytest.mark.parametrize("precision, kind", [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_bfloat16_is_used_only_with_that_precision(
    pytorch_searches: None,
    random_run: LoadedModel,
    precision: str,
    kind: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = set()
    forward = Encoder.forward

    def noted(*arguments: Any) -> Tensor:
        memory = forward(*arguments)
        kinds.add(memory.dtype)
        return memory

    monkeypatch.setattr(Encoder, "forward", noted)
    list(Translator(random_run, precision=precision).translations(["a small dog"]))
    assert kinds == {kind}
    assert {p.dtype for p in random_run.model.parameters()} == {torch.float32}
