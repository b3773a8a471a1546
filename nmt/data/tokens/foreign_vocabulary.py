"""Vocabularies of other programs, in which a piece has a row of its own, as our tokenizers.

Marian and Hugging Face split a text into pieces with SentencePiece, and then look up the row of
each piece in a table. So the ids of SentencePiece are not the rows. Here a SentencePiece model gets
the pieces of the table, in the order of our ids: PAD, UNK, BOS, EOS, and then all rows.
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

_SPECIAL_TYPES = (UNKNOWN_TYPE, CONTROL_TYPE)
_UNUSED = 5  # value of an enum in sentencepiece_model.proto: never in a text, but can be decoded


@dataclass(frozen=True)
class ForeignVocabulary:
    """The vocabulary of one language in another program."""

    segmentation: bytes
    """the serialised SentencePiece model that splits text into pieces"""
    rows: Mapping[str, int]
    """the row in the matrices of each piece; other pieces are unknown"""
    size: int
    """the rows of the matrices; some may have no piece"""
    specials: Mapping[int, int]
    """the rows of our special ids; a special id that is missing here has none"""


@dataclass(frozen=True)
class AdoptedVocabulary:
    """One of our SentencePiece models, and where the rows of its ids are in the other program."""

    model: SubwordModel
    rows: list[int]
    """the row of each id; -1: it has none"""

    def ids(self, size: int) -> list[int]:
        """Return our id of each of `size` rows; -1: it has none."""
        ids = [-1] * size
        for i, row in enumerate(self.rows):
            if row >= 0:
                ids[row] = i
        return ids


def adopt_foreign(
    source: ForeignVocabulary, target: ForeignVocabulary
) -> tuple[AdoptedVocabulary, AdoptedVocabulary]:
    """Return the vocabularies of source and target; if their rows are equal, the ids are as well.

    Raises:
        DataError: a SentencePiece model is damaged.
    """
    protos = [
        parse_model(side.segmentation, f"the SentencePiece model of the {name}")
        for name, side in (("source", source), ("target", target))
    ]
    if source.rows == target.rows:
        together = [piece for proto in protos for piece in proto.pieces]
        first = _adopt(source, protos[0], together)
        if source.segmentation == target.segmentation:
            return first, first
        return first, _adopt(target, protos[1], together)
    return _adopt(source, protos[0], protos[0].pieces), _adopt(target, protos[1], protos[1].pieces)


def tokenizer_of(source: AdoptedVocabulary, target: AdoptedVocabulary) -> Tokenizer:
    """Return the tokenizer of two vocabularies, which may be one."""
    return Tokenizer(source.model, None if target is source else target.model)


def _adopt(vocabulary: ForeignVocabulary, proto: Any, known: Sequence[Any]) -> AdoptedVocabulary:
    """Rewrite `proto`; `known` are all pieces that SentencePiece knows, of any language."""
    kind = KINDS.get(proto.trainer_spec.model_type, "unknown")
    # BPE would merge an unused piece and split it again, which changes the pieces around it
    hidden = (_UNUSED, 0.0) if kind == "unigram" else (CONTROL_TYPE, HIDDEN)
    names, special_rows = _names(vocabulary), set(vocabulary.specials.values())
    ordinary = [row for row in range(vocabulary.size) if row not in special_rows]
    # A piece without a row is unknown to the other program. Here it is unused: BPE needs it to
    # build longer pieces, and a text is split into shorter ones where it would end up in it.
    extra = dict.fromkeys(
        piece.piece
        for piece in known
        if piece.type not in _SPECIAL_TYPES and piece.piece not in vocabulary.rows
    )
    spellings = [*(names[row] for row in ordinary), *extra]
    own = {piece.piece: piece for piece in proto.pieces if piece.type not in _SPECIAL_TYPES}
    make = type(proto.pieces[0])
    pieces = []
    for i, (name, spelling) in enumerate(SPECIALS.items()):
        while spelling in spellings:
            spelling = f"<{spelling}>"
        setattr(proto.trainer_spec, f"{name}_id", i)
        setattr(proto.trainer_spec, f"{name}_piece", spelling)
        pieces.append(make(piece=spelling, type=UNKNOWN_TYPE if i == UNK else CONTROL_TYPE))
    for spelling in spellings:
        if spelling in own:
            kind_of_piece = _UNUSED if spelling in extra else own[spelling].type
            score = own[spelling].score
        elif spelling in vocabulary.rows or spelling in extra:
            kind_of_piece, score = hidden
        else:  # a row without a piece
            kind_of_piece, score = CONTROL_TYPE, 0.0
        pieces.append(make(piece=spelling, score=score, type=kind_of_piece))
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
