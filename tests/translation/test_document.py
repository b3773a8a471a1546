import pytest

from nmt.errors import ConfigError, Progress
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel
from nmt.translation import document as document_module
from nmt.translation.document import halves, join
from nmt.translation.line import Line, Translation, Warn, numbered_lines
from nmt.translation.request import TranslationRequest
from nmt.translation.translator import Translator

PARAGRAPHS = [
    "A dog sleeps. A cat, e.g. Tom, runs!  Does it? Yes.",
    "",
    "one sentence",
    "   ",
    "好。他说。",
]


@pytest.fixture
def copier(copying_run: LoadedModel) -> Translator:
    """Its translation of a sentence is the sentence."""
    return Translator(copying_run, DecodingConfig(beam_size=1))


def documents(
    translator: Translator,
    texts: list[str],
    window_lines: int = 200,
    warn: Warn = print,
    progress: Progress = id,
) -> list[Translation]:
    pipeline = translator.pipeline(TranslationRequest(document=True))
    found = pipeline.translate(numbered_lines(texts), window_lines, warn, progress)
    return [best for best, *_ in found]


@pytest.mark.parametrize("window_lines", [1, 2, 200])
def test_paragraphs_come_back_line_for_line(copier: Translator, window_lines: int) -> None:
    """Progress counts paragraphs, after each batch by its share of the sentences."""
    counted: list[int] = []
    found = documents(copier, PARAGRAPHS, window_lines, progress=counted.append)
    expected = [" ".join(PARAGRAPHS[0].split()), "", "one sentence", "", "好。他说。"]
    assert [translation.text for translation in found] == expected
    assert sum(counted) == len(PARAGRAPHS)


def test_sentences_are_translated_as_if_each_stood_alone(random_run: LoadedModel) -> None:
    sentences = ["A small dog.", "Is it 3?", "Yes!"]
    translator = Translator(random_run)
    alone = list(translator.translations(sentences))
    (together,) = documents(translator, [" ".join(sentences)])
    assert together.text == " ".join(translation.text for translation in alone)
    assert together.score == pytest.approx(sum(translation.score for translation in alone))


def test_sentences_are_tokenised_once(copier: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    encode = copier.loaded.tokenizer.source.encode

    def recorded(texts: list[str]) -> list[list[int]]:
        encoded.extend(texts)
        return encode(texts)

    monkeypatch.setattr(copier.loaded.tokenizer.source, "encode", recorded)
    documents(copier, PARAGRAPHS)
    assert len(encoded) == len(set(encoded)) == 9
    encoded.clear()
    list(copier.translations(PARAGRAPHS))
    assert encoded == PARAGRAPHS


def test_paragraphs_have_one_translation_each(copier: Translator) -> None:
    with pytest.raises(ConfigError, match="leave one of them out"):
        copier.pipeline(TranslationRequest(n_best=2, document=True))


def test_too_long_a_sentence_is_divided_and_not_truncated(
    copier: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_module, "MAX_SOURCE_TOKENS", 30)
    text = "a small dog, and a cat; it sleeps and it runs. Short. " + "x" * 70
    warnings: list[str] = []
    found = [t.text for t in documents(copier, ["fine", text], warn=warnings.append)]
    assert found[0] == "fine"
    assert "".join(found[1].split()) == "".join(text.split())
    assert found[1].startswith("a small dog, and a cat; it sleeps and it runs. Short. x")
    assert [warning.partition(" a sentence of ")[0] for warning in warnings] == ["line 2 has"] * 2
    assert all("more than 30" in warning and "pieces" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one two, three; four five", ["one two, three;", "four five"]),
        ("a, b c d e f; g", ["a, b c", "d e f; g"]),
        ("one two three, four five six", ["one two three,", "four five six"]),
        ("one two three four", ["one two", "three four"]),
        ("abcdef", ["abc", "def"]),
        ("1,000,000,000", ["1,000,", "000,000"]),
        ("一二三，四五六", ["一二三，", "四五六"]),
        ("ab", ["a", "b"]),
    ],
)
def test_the_strongest_boundary_near_the_middle_divides(text: str, parts: list[str]) -> None:
    assert halves(text) == parts


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (["Ja.", "", "Nein."], "Ja. Nein."),
        (["好。", "他说。"], "好。他说。"),
        (["他说“好。”", "好!", "走了……", "（好）", "好"], "他说“好。”好!走了……（好）好"),
        (["Yes.", "좋다.", "好。", "No."], "Yes. 좋다. 好。No."),
        ([], ""),
    ],
)
def test_sentences_are_joined_with_a_space_where_their_script_has_one(
    texts: list[str], joined: str
) -> None:
    sentences = [(Line(1, text), Translation(text, -1.5)) for text in texts]
    found = join("", sentences)
    assert found == Translation(joined, -1.5 * len(texts))
