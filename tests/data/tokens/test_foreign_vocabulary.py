"""Vocabularies of other programs: the same pieces of a text, and rows that go there and back."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import sentencepiece

from nmt.data.text.lines import read_lines
from nmt.data.tokens.foreign_vocabulary import (
    AdoptedVocabulary,
    ForeignVocabulary,
    adopt_foreign,
    tokenizer_of,
)
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.data.tokens.word_encoder import bulk_encoder
from tests.data.tokens.tokenizers import drawn_segmentation
from tests.marian_vocabularies import learn

SYLLABLES = ["ba", "ri", "tone", "lu", "mi", "nous", "ka", "le", "ido", "sco", "pe", "an", "the"]
SPECIAL = ["</s>", "<unk>"]
TAG = ">>fra<<"


def texts(seed: int, count: int = 200, letters: str = "") -> list[str]:
    """Return random texts of words of a few syllables, and of some `letters`."""
    draw = random.Random(seed)

    def word() -> str:
        return "".join(draw.choices(SYLLABLES, k=draw.randint(1, 3))) + draw.choice([*letters, ""])

    return [" ".join(word() for _ in range(draw.randint(1, 6))) for _ in range(count)]


def processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def pieces_of(model: bytes) -> list[str]:
    loaded = processor(model)
    return [loaded.id_to_piece(i) for i in range(loaded.get_piece_size())]


def vocabulary(model: bytes, pieces: Sequence[str], holes: int = 0) -> ForeignVocabulary:
    """Return a vocabulary whose rows are `pieces`, after `holes` rows without one."""
    rows = {piece: holes + row for row, piece in enumerate(dict.fromkeys([*SPECIAL, *pieces]))}
    specials = {UNK: rows["<unk>"], EOS: rows["</s>"]}
    return ForeignVocabulary(model, rows, holes + len(rows), specials)


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def models(request: pytest.FixtureRequest) -> tuple[bytes, bytes]:
    """SentencePiece models of source and target, each with pieces of its own."""
    source, target = texts(1, letters="xyz"), [text.upper() for text in texts(2)] + texts(3, 40)
    return learn(request.param, source, 90), learn(request.param, target, 110)


@pytest.fixture(params=["one table", "two tables"])
def sides(
    request: pytest.FixtureRequest, models: tuple[bytes, bytes]
) -> tuple[ForeignVocabulary, ForeignVocabulary]:
    pieces = [pieces_of(model) for model in models]
    if request.param == "one table":
        pieces = [[TAG, *pieces[0], *pieces[1], "<pad>"]] * 2
    return vocabulary(models[0], pieces[0], holes=2), vocabulary(models[1], pieces[1], holes=2)


Sides = tuple[ForeignVocabulary, ForeignVocabulary]


def test_texts_have_the_pieces_of_the_original_model(sides: Sides) -> None:
    for side, adopted in zip(sides, adopt_foreign(*sides), strict=True):
        original = processor(side.segmentation)
        for text in texts(5, letters="xyz?é") + ["", " a  b ", "</s> <unk> <pad> ▁", "世界 BARI"]:
            assert adopted.model.split(text) == original.encode(text, out_type=str)


def test_rows_and_ids_are_inverse_and_the_rows_keep_their_order(sides: Sides) -> None:
    for side, adopted in zip(sides, adopt_foreign(*sides), strict=True):
        ids, pieces = adopted.ids(side.size), adopted.model.pieces
        assert [adopted.rows[i] for i in ids] == list(range(side.size))
        assert [adopted.rows[i] for i in (PAD, BOS)] == [-1, -1]
        assert (ids[side.specials[UNK]], ids[side.specials[EOS]]) == (UNK, EOS)
        ordinary = [row for row in adopted.rows[4:] if row >= 0]
        assert ordinary == sorted(ordinary)
        for piece, row in side.rows.items():
            assert pieces[ids[row]] == piece or ids[row] in (UNK, EOS)


def test_equal_rows_give_equal_ids_in_both_languages(sides: Sides) -> None:
    source, target = adopt_foreign(*sides)
    equal = sides[0].rows == sides[1].rows
    assert (source.model.pieces == target.model.pieces) == equal
    assert (source.rows == target.rows) == equal


def test_a_vocabulary_of_one_model_is_one_tokenizer(models: tuple[bytes, bytes]) -> None:
    side = vocabulary(models[0], pieces_of(models[0]))
    assert tokenizer_of(*adopt_foreign(side, side)).shared


def test_pieces_of_the_other_language_are_decoded_and_found_by_spelling(
    sides: Sides,
) -> None:
    for side, adopted in zip(sides, adopt_foreign(*sides), strict=True):
        ids = adopted.ids(side.size)
        own = set(pieces_of(side.segmentation))
        others = [piece for piece in side.rows if piece not in own and piece not in ("<pad>", TAG)]
        assert bool(others) == (sides[0].rows == sides[1].rows)
        for piece in others:
            row = ids[side.rows[piece]]
            text = piece.replace("▁", " ")
            assert adopted.model.decode([[row]]) == [text.removeprefix(" ")]
            known = ids[next(row for p, row in side.rows.items() if p in own and p.isalpha())]
            first = adopted.model.decode([[known]])[0]
            assert adopted.model.decode([[known, row]]) == [first + text]
            assert adopted.model.piece_bytes()[row] == text.encode()
            spelled = processor(side.segmentation).encode(text, out_type=str)
            assert (row in adopted.model.encode([text])[0]) == (piece in spelled)
            assert row not in adopted.model.encode([f"{text}{text}"])[0]


def assert_marian_rows(
    side: ForeignVocabulary, adopted: AdoptedVocabulary, texts: list[str]
) -> None:
    """Check that texts have the rows that MarianTokenizer gives them.

    It looks up the pieces of SentencePiece by their spelling, unknown ones as well.
    """
    original, unknown = processor(side.segmentation), side.rows["<unk>"]
    pieces = [*original.encode(texts, out_type=str)]
    expected = [[*(side.rows.get(p, unknown) for p in row), side.rows["</s>"]] for row in pieces]
    ids = adopted.model.encode(texts)
    assert [[adopted.rows[i] for i in row] for row in ids] == expected
    assert [adopted.model.encode([text])[0] for text in texts] == ids
    fast = bulk_encoder(adopted.model, threads=1)(texts)
    assert [fast.sentence(i).tolist() for i in range(len(texts))] == ids
    for text, row in zip(texts, ids, strict=True):
        assert bool(adopted.model.unknown_characters(text)) == (UNK in row), text
        drawn = drawn_segmentation(adopted.model, row, 0.5)
        assert adopted.model.decode([drawn]) == adopted.model.decode([row])
        assert drawn.count(UNK) == row.count(UNK)


FOUND = ["é", "+", "‘", "éà", "世界", "ß", "▁é", "👍", "\u0301", "ᾳ"]
HOLES = [
    "bé",
    "é",
    "éé",
    "éà",
    "éàé",
    "+ ‘ +‘",
    "世 世界 世界é",
    "ß👍",
    "nous ß leß",
    "e\u0301",
    "q",
]


def test_what_only_the_table_has_is_found_by_its_spelling(models: tuple[bytes, bytes]) -> None:
    """As in published models, whose SentencePiece models lack letters that the table has."""
    both = [*pieces_of(models[0]), *pieces_of(models[1]), *FOUND]
    sides = vocabulary(models[0], both), vocabulary(models[1], both)
    found = texts(8, 50, letters="éß+xq") + HOLES + [" ".join(HOLES), "</s>é", "  é  "]
    for side, adopted in zip(sides, adopt_foreign(*sides), strict=True):
        assert_marian_rows(side, adopted, found)
        row = adopted.ids(side.size)[side.rows["é"]]
        assert adopted.model.encode(["ba é", "éé"])[0][-2] == row
        assert row not in adopted.model.encode(["éé"])[0]  # its neighbours are one unknown piece
        assert adopted.model.unknown("baé é q é") == (["q"] if "q" not in "".join(both) else [])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("coverage", [0.9995, 0.98])
@pytest.mark.parametrize("languages", ["en-fr", "fr-en", "en-de"])
def test_real_text_has_the_rows_of_marian(
    kind: str, coverage: float, languages: str, test_data: Path
) -> None:
    sides = [
        [*read_lines(test_data / "newstest" / f"newstest2013.{language}.xz")]
        for language in languages.split("-")
    ]
    models = [learn(kind, side, 2000, character_coverage=coverage) for side in sides]
    letters = sorted({*"".join(sides[0] + sides[1])} - {" "})[::2]  # half of them
    both = [*pieces_of(models[0]), *pieces_of(models[1]), *letters]
    vocabularies = vocabulary(models[0], both), vocabulary(models[1], both)
    adopted = adopt_foreign(*vocabularies)
    for side, own, lines in zip(vocabularies, adopted, sides, strict=True):
        assert_marian_rows(side, own, lines)


@pytest.mark.parametrize(
    "removed", [lambda p: len(p) == 2, lambda p: len(p) > 3], ids=["short", "long"]
)
def test_pieces_without_a_row_are_split_and_never_read(
    models: tuple[bytes, bytes], removed: Callable[[str], bool]
) -> None:
    """BPE still builds longer pieces from them, as the other program does."""
    kept = [[p for p in pieces_of(model) if not removed(p)] for model in models]
    both = [*kept[0], *kept[1]]
    sides = vocabulary(models[0], both), vocabulary(models[1], both)
    for side, adopted in zip(sides, adopt_foreign(*sides), strict=True):
        original = processor(side.segmentation)
        for text in texts(6, letters="xyz"):
            found, pieces = adopted.model.split(text), original.encode(text, out_type=str)
            assert "".join(found) == "".join(pieces)
            assert all(adopted.rows[i] >= 0 for i in adopted.model.encode([text])[0])
            if all(
                piece in side.rows or original.is_unknown(original.piece_to_id(piece))
                for piece in pieces
            ):
                assert found == pieces, text


def test_known_tags_count_at_the_start_of_a_text_alone(sides: Sides) -> None:
    source = adopt_foreign(*sides)[0].model
    tags = source.tags
    assert list(tags) == [TAG] * (TAG in sides[0].rows)
    plain, tagged, inside, unknown, spaced = source.encode(
        ["bari", f"{TAG} bari", f"bari {TAG}", ">>xyz<< bari", f" {TAG}bari"]
    )
    assert (tagged == [*tags.values(), *plain]) == bool(tags)
    for row in (inside, unknown, spaced):
        assert not set(row) & set(tags.values())
