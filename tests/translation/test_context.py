"""Sentences that are translated with those before them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.context import CONTEXT, separators_of
from nmt.data.tokens.tokenizer import EOS
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import ConfigError
from nmt.recipe.config import Config
from nmt.run.model import LoadedModel, build_model
from nmt.search.hypothesis import Hypothesis
from nmt.search.searcher import Searcher
from nmt.translation.line import Line, Terminology, numbered_lines
from nmt.translation.request import TranslationRequest
from nmt.translation.scoring import Scorer
from nmt.translation.translator import Translator

TEXT = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ . <>"
DOCUMENT = TranslationRequest(document=True)
MODEL = {"d_model": 8, "heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1}


def context_run(sides: str = "source+target") -> LoadedModel:
    """Return a model with random weights that knows the separator."""
    settings = {
        "data": {"context": {"sentences": 2, "sides": sides}, "cleaning": {"max_length": 60}},
        "tokenizer": {"kind": "char", "vocabulary_size": 80},
        "model": MODEL,
    }
    config = Config.model_validate(settings)
    tokenizer = learn_vocabulary([SentencePair(TEXT, TEXT)], config.tokenizer, symbols=[CONTEXT])
    return LoadedModel(config, tokenizer, build_model(config, tokenizer).eval(), Path("run"))


class Echo:
    """Stands for a search: the translation is the source, but a hypothesis may lack separators."""

    def __init__(self, run: LoadedModel, forgets: str = "\0") -> None:
        self.run, self.separator, self.forgets = run, separators_of(run.tokenizer)[0], forgets
        self.searched: list[str] = []
        """what each search got, with | for a separator and > before what was forced"""

    def text(self, ids: Sequence[int]) -> str:
        parts: list[list[int]] = [[]]
        for token in ids:
            if token == self.separator:
                parts.append([])
            else:
                parts[-1].append(token)
        return "|".join(self.run.tokenizer.source.decode(parts))

    def __call__(
        self,
        ids: list[list[int]],
        numbers: list[int],
        constraints: list[Any],
        n_best: int,
        begins: None = None,
    ) -> list[list[Hypothesis]]:
        found = []
        for row, constraint in zip(ids, constraints, strict=True):
            forced = constraint.context_ids if constraint else ()
            self.searched.append(self.text(row) + (">" + self.text(forced) if forced else ""))
            tokens = [token for token in row if token != EOS]
            if forced:
                own = tokens[len(tokens) - tokens[::-1].index(self.separator) :]
                tokens = [*forced, *own]
            if self.forgets in self.text(row):
                tokens = [token for token in tokens if token != self.separator]
            found.append([Hypothesis(tuple(tokens), 0.0)])
        return found


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> Echo:
    found = Echo(context_run())
    monkeypatch.setattr(Searcher, "search", lambda self, **asked: found(**asked))
    return found


def test_a_document_is_translated_with_the_sentences_before_each(echo: Echo) -> None:
    """A blank line ends it, and windows do not; what comes out is the sentence alone."""
    texts = ["One. Two.", "Three.", "12", "Four.", "", "Five.", "Six."]
    pipeline = Translator(echo.run).pipeline(DOCUMENT)
    lines = pipeline.translate(numbered_lines(texts), window_lines=2)
    assert [best.text for best, *_ in lines] == texts
    assert set(echo.searched) == {
        "One.",
        "One.|Two.",
        "One.|Two.|Three.",
        "Two.|Three.|Four.",
        "Five.",
        "Five.|Six.",
    }
    echo.searched.clear()
    assert [best.text for best, *_ in pipeline.translate(numbered_lines(["Another."]))]
    assert echo.searched == ["Another."]  # another text


def test_lines_that_are_no_document_are_translated_alone(echo: Echo) -> None:
    assert Translator(echo.run).translate(["One.", "Two."]) == ["One.", "Two."]
    assert echo.searched == ["Two.", "One."] or echo.searched == ["One.", "Two."]


def test_without_the_expected_separators_a_sentence_is_translated_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    echo = Echo(context_run(), forgets="Two")
    monkeypatch.setattr(Searcher, "search", lambda self, **asked: echo(**asked))
    notes: list[str] = []
    pipeline = Translator(echo.run).pipeline(DOCUMENT)
    found = pipeline.translate(numbered_lines(["One.", "Two.", "Three."]), warn=notes.append)
    assert [best.text for best, *_ in found] == ["One.", "Two.", "Three."]
    assert echo.searched[-2:] == ["Two.", "Three."] or echo.searched[-2:] == ["Three.", "Two."]
    [note] = notes
    assert note.startswith("sentences that were translated without those before them")
    assert note.endswith(": 2")


@pytest.mark.parametrize(
    ("context", "searched"),
    [
        ((("One.", ""), ("Two.", "")), "One.|Two.|Three."),
        ((("One.", "Uno."), ("Two.", "Due.")), "One.|Two.|Three.>Uno.|Due.|"),
        ((("One.", "Uno."), ("Two.", "")), "One.|Two.|Three."),
        ((("Zero.", ""), ("One.", ""), ("Two.", "")), "One.|Two.|Three."),
        ((("x" * 60, ""), ("Two.", "")), "Two.|Three."),
        (((f"a {CONTEXT} b", ""),), f"a {CONTEXT} b|Three."),
    ],
)
def test_a_line_may_say_what_was_before_it(
    echo: Echo, context: tuple[tuple[str, str], ...], searched: str
) -> None:
    """Translations that are given are forced; a spelled separator is text."""
    pipeline = Translator(echo.run).pipeline()
    [[best]] = pipeline.translate([Line(1, "Three.", context=context)])
    assert (best.text, echo.searched) == ("Three.", [searched])


def test_constraints_are_met_by_the_sentence_and_not_by_its_context(echo: Echo) -> None:
    """The translations that were found for the context are forced then."""
    request = TranslationRequest(document=True, terminology=Terminology.of({"Two": "Zwei"}))
    pipeline = Translator(echo.run).pipeline(request)
    list(pipeline.translate(numbered_lines(["Zwei.", "Two now."])))
    assert echo.searched[-2:] == ["Zwei.|Two now.", "Zwei.|Two now.>Zwei.|"]


def test_only_sources_are_joined_if_only_these_were_learnt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    echo = Echo(context_run("source"))
    monkeypatch.setattr(Searcher, "search", lambda self, **asked: echo(**asked))
    list(Translator(echo.run).pipeline(DOCUMENT).translate(numbered_lines(["One.", "Two."])))
    assert "One.|Two." in echo.searched
    assert len(echo.searched) == 2


@pytest.mark.parametrize("native", [True, False])
def test_the_search_forces_the_context_and_meets_terms_behind_it(
    monkeypatch: pytest.MonkeyPatch, native: bool
) -> None:
    if not native:
        monkeypatch.setattr(Searcher, "native", None)
    terms = Terminology.of({"cat": "Mia"}, forbidden=["Uno"])
    line = Line(1, "a cat.", terms, context=(("b.", "Uno Mia."),))
    [[best]] = Translator(context_run()).pipeline().translate([line])
    assert "Mia" in best.text
    assert "Uno" not in best.text


def test_a_model_without_context_ignores_it() -> None:
    run = context_run()
    config = run.config.model_copy(
        update={"data": run.config.data.model_copy(update={"context": None})}
    )
    plain = LoadedModel(config, run.tokenizer, run.weights, run.path)
    pipeline = Translator(plain).pipeline()
    with_context = Line(1, "Three.", context=(("One.", ""),))
    assert [*pipeline.translate([with_context])] == [*pipeline.translate([Line(1, "Three.")])]
    with pytest.raises(ConfigError, match="has learnt no context"):
        Scorer(plain, document=True)


def test_a_pair_is_scored_given_those_before_it() -> None:
    """The scores of its tokens are those behind the context in one long pair."""
    run = context_run()
    pairs = [("One.", "Uno."), ("Two.", "Due."), ("", ""), ("Two.", "Due.")]
    first, second, blank, alone = Scorer(run, document=True).score(pairs)
    assert [len(each.tokens) for each in (first, second, blank, alone)] == [6, 6, 1, 6]
    [plain] = Scorer(run).score([("Two.", "Due.")])
    assert alone.log_probability == pytest.approx(plain.log_probability, rel=1e-4)
    assert second.log_probability != pytest.approx(plain.log_probability, rel=1e-4)
