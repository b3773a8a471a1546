import pytest

from nmt.translation.documents.aligned_words import AlignedText, AlignedWords
from nmt.translation.spans import Link


def aligned(
    source: str, target: str, links: list[tuple[tuple[int, int], tuple[int, int]]]
) -> AlignedText:
    return AlignedText(source, target, [Link(*link) for link in links])


def words_of(text: str, words: AlignedWords) -> list[str]:
    return [text[start:end] for start, end in words.target]


def test_words_are_aligned_where_their_characters_are() -> None:
    """The pieces of a model begin with a space, may be parts of words, or several words."""
    text = aligned("the dogs, sleep", "die Hunde, schlafen", [])
    links = [((0, 3), (0, 3)), ((3, 7), (3, 7)), ((7, 8), (7, 9)), ((8, 9), (9, 10))]
    links += [((9, 15), (10, 17)), ((3, 8), (17, 19))]
    text = AlignedText(text.source, text.target, [Link(*link) for link in links])
    words = AlignedWords(text)
    assert words_of(text.target, words) == ["die", "Hunde", ",", "schlafen"]
    assert words.sources == [[0], [1, 1], [2], [3, 1]]
    assert words.centres.tolist() == [0.0, 1.0, 2.0, 2.0]
    assert [
        list(words.source_words(span)) for span in ((0, 3), (3, 5), (8, 9), (9, 10), (4, 4))
    ] == [
        *([0], [1], [2], [], []),
    ]
    assert len(words.source_marks) == 4
    assert (words.source_marks, words.marks) == ([False, False, True, False],) * 2


def test_a_copied_text_without_links_is_aligned_word_by_word() -> None:
    assert AlignedWords(aligned("a, b", "a, b", [])).sources == [[0], [1], [2]]
    assert AlignedWords(aligned("a, b", "x y", [])).sources == [[], []]


def test_a_copied_word_is_cut_as_its_source() -> None:
    links = [((0, 3), (4, 7)), ((4, 9), (0, 3))]
    text = aligned("H2O water", "uva H2O", links)
    words = AlignedWords(text, cuts=[1, 2, 6])
    assert words_of(text.target, words) == ["uva", "H", "2", "O"]
    assert words.sources == [[3, 4], [0], [1], [2]]


def test_what_is_kept_is_one_word() -> None:
    text = aligned("a f( x )b", "f( x )A", [((1, 9), (1, 7)), ((2, 8), (0, 6))])
    words = AlignedWords(text, kept=[(2, 8)])
    assert words_of(text.target, words) == ["f( x )", "A"]
    assert words.kept == {(0, 6): (2, 8)}
    assert len(words.source_marks) == 3


@pytest.mark.parametrize("target", ["", "x"])
def test_nothing_is_kept_without_a_link(target: str) -> None:
    assert AlignedWords(aligned("a b", target, []), kept=[(0, 1)]).kept == {}
