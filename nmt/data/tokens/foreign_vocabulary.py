"""Turns vocabularies of Marian and Hugging Face, which have a table of rows, into our tokenizers.

These programs split a text into pieces with SentencePiece, and then look up in a table which row of
the embedding matrices each piece has. So the ids of SentencePiece are not the rows. Here a
SentencePiece model is rewritten so that its ids are PAD, UNK, BOS, EOS, and then all other rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nmt.data.tokens.tokenizer import BOS, EOS, HIDDEN, PAD, UNK, SubwordModel, Tokenizer
from nmt.data.tokens.vocabulary import (
    CONTROL_TYPE,
    KINDS,
    SPECIALS,
    UNKNOWN_TYPE,
    parse_model,
    unknown_surface,
)
from nmt.errors import DataError

_SPECIAL_TYPES = (UNKNOWN_TYPE, CONTROL_TYPE)
_UNUSED = 5  # value of an enum in sentencepiece_model.proto: never in a text, but can be decoded


@dataclass(frozen=True)
class ForeignVocabulary:
    """The vocabulary of one language in another program."""

    segmentation: bytes
    """the serialised SentencePiece model that splits text into pieces"""
    rows: Mapping[str, int]
    """the row of each piece in the embedding matrices; other pieces are unknown"""
    size: int
    """the number of rows of the matrices; some may have no piece"""
    specials: Mapping[int, int]
    """the row of each of our special ids (PAD, UNK, BOS, EOS); an id may be missing"""
    controls: frozenset[str] = frozenset()
    """the pieces in `rows` that stand for no text, such as tags of languages"""
    kept: frozenset[int] | None = None
    """the rows that are taken over; None: all"""

    @property
    def kept_rows(self) -> Sequence[int]:
        """The rows that are taken over, in order."""
        return range(self.size) if self.kept is None else sorted(self.kept)


@dataclass(frozen=True)
class AdoptedVocabulary:
    """One of our SentencePiece models, and where the rows of its ids are in the other program."""

    model: SubwordModel
    rows: list[int]
    """the row of each id; -1: the id has no row"""

    def ids(self, size: int) -> list[int]:
        """Return our id of each of `size` rows, the inverse of `rows`; -1: the row has no id."""
        ids = [-1] * size
        for id_, row in enumerate(self.rows):
            if row >= 0:
                ids[row] = id_
        return ids


def adopt_foreign(
    source: ForeignVocabulary, target: ForeignVocabulary
) -> tuple[AdoptedVocabulary, AdoptedVocabulary]:
    """Return the vocabularies of source and target as ours.

    If both languages have the same table of rows, they also get the same ids; if they have the same
    SentencePiece model as well, one object is returned twice.

    Raises:
        DataError: a SentencePiece model is damaged, or rows do not fit the matrices.
    """
    _check_rows(source, "source")
    _check_rows(target, "target")
    source_proto = parse_model(source.segmentation, "the SentencePiece model of the source")
    target_proto = parse_model(target.segmentation, "the SentencePiece model of the target")
    if source.rows == target.rows:
        all_pieces = [*source_proto.pieces, *target_proto.pieces]
        adopted_source = _adopt(source, source_proto, all_pieces)
        if source.segmentation == target.segmentation:
            return adopted_source, adopted_source
        return adopted_source, _adopt(target, target_proto, all_pieces)
    return (
        _adopt(source, source_proto, source_proto.pieces),
        _adopt(target, target_proto, target_proto.pieces),
    )


def _check_rows(vocabulary: ForeignVocabulary, name: str) -> None:
    """Check that each piece has a row of its own; `name` is source or target.

    Raises:
        DataError: a row is not in the matrices, or belongs to two pieces.
    """
    for piece, row in vocabulary.rows.items():
        if not 0 <= row < vocabulary.size:
            raise DataError(
                f"the {name} vocabulary has the row {row:,} for {piece!r}, but the model has "
                f"{vocabulary.size:,} rows; they do not belong together"
            )
    if len(set(vocabulary.rows.values())) < len(vocabulary.rows):
        raise DataError(f"two pieces of the {name} vocabulary have the same row")


def tokenizer_of(source: AdoptedVocabulary, target: AdoptedVocabulary) -> Tokenizer:
    """Return the tokenizer of two vocabularies; if both are one object, it is shared."""
    return Tokenizer(source.model, None if target is source else target.model)


def _adopt(
    vocabulary: ForeignVocabulary, proto: Any, all_pieces: Sequence[Any]
) -> AdoptedVocabulary:
    """Rewrite `proto`, the parsed SentencePiece model of `vocabulary`, to have our ids.

    `all_pieces` are those of `proto`; if both languages get the same ids, those of both models.
    """
    kind = KINDS.get(proto.trainer_spec.model_type, "unknown")
    # BPE would merge an unused piece and split it again, which changes the pieces around it
    never_read = _UNUSED if kind == "unigram" else CONTROL_TYPE
    names, special_rows = _names(vocabulary), set(vocabulary.specials.values())
    ordinary = [row for row in vocabulary.kept_rows if row not in special_rows]
    # A piece without a row is unknown to the other program. Here it is unused: BPE needs it to
    # build longer pieces, and a text is split into shorter ones where it would end up in it.
    extra = dict.fromkeys(
        piece.piece
        for piece in all_pieces
        if piece.type not in _SPECIAL_TYPES and piece.piece not in vocabulary.rows
    )
    spellings = [*(names[row] for row in ordinary), *extra]
    own = {piece.piece: piece for piece in proto.pieces if piece.type not in _SPECIAL_TYPES}
    new_piece = type(proto.pieces[0])
    pieces = []
    for i, (name, spelling) in enumerate(SPECIALS.items()):
        while spelling in spellings:
            spelling = f"<{spelling}>"
        setattr(proto.trainer_spec, f"{name}_id", i)
        setattr(proto.trainer_spec, f"{name}_piece", spelling)
        type_ = UNKNOWN_TYPE if i == UNK else CONTROL_TYPE
        pieces.append(new_piece(piece=spelling, type=type_))
    for spelling in spellings:
        if spelling in own:
            type_ = _UNUSED if spelling in extra else own[spelling].type
            score = own[spelling].score
            if type_ == _UNUSED and kind == "unigram":
                score = 0.0  # it has no effect, and is not that of a hidden piece
        elif spelling in vocabulary.rows and spelling not in vocabulary.controls:
            # a piece that `proto` lacks, found by its spelling
            type_, score = never_read, HIDDEN
        else:  # a piece without a row, or a row without a piece
            type_, score = CONTROL_TYPE, 0.0
        pieces.append(new_piece(piece=spelling, score=score, type=type_))
    proto.trainer_spec.unk_surface = unknown_surface(kind)
    proto.trainer_spec.vocab_size = len(pieces)
    del proto.pieces[:]
    proto.pieces.extend(pieces)
    rows = [vocabulary.specials.get(i, -1) for i in (PAD, UNK, BOS, EOS)]
    rows += ordinary + [-1] * len(extra)
    return AdoptedVocabulary(SubwordModel(proto.SerializeToString()), rows)


def _names(vocabulary: ForeignVocabulary) -> list[str]:
    """Return a spelling for each row; rows without a piece get one that no text contains."""
    names = [""] * vocabulary.size
    for piece, row in vocabulary.rows.items():
        names[row] = piece
    for row, name in enumerate(names):
        spelling = name or f"<row {row}>"
        while not name and spelling in vocabulary.rows:
            spelling = f"<{spelling}>"
        names[row] = spelling
    return names
