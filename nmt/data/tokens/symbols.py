"""The ids of texts, spelled in the symbols that a segmentation is built from: mostly characters."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.data.tokens.hashed_random import Hashes, hash_integers
from nmt.data.tokens.token_store import Sentences
from nmt.data.tokens.tokenizer import SPACE
from nmt.data.tokens.vocabulary import CONTROL_TYPE

Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Spelled:
    """The N symbols of texts, one text after the other."""

    symbols: Array
    """(N,): the symbols; see `SymbolTable`"""
    texts: Array
    """(N,): the text of each symbol, from 0"""
    words: Array
    """(N,): the word of each symbol, counted from 0 over all texts; no piece is in two words"""
    pieces: Array
    """(N,): the id that the text has now for the symbols from here on; -1 inside of a piece"""
    keys: Hashes
    """(N,): a random number for each symbol, a hash of the key of its text and its place there"""


class SymbolTable:
    """Says how each id of a SentencePiece model is spelled.

    Pieces of text are spelled in their characters. Other ids, such as those of EOS, of tags and of
    bytes, are spelled as themselves: a symbol that is part of no longer piece. The symbol of a
    character is the id of its piece; a character without one has a number above all ids.
    """

    def __init__(self, proto: Any, types_of_text: Container[int]) -> None:
        """Take a parsed SentencePiece model, and the types of its pieces that stand for text."""
        pieces = proto.pieces
        self.ids: dict[str, int] = {
            piece.piece: i for i, piece in enumerate(pieces) if piece.type in types_of_text
        }
        """the id of each piece of text"""
        characters = sorted(set("".join(self.ids)))
        without_piece = [character for character in characters if character not in self.ids]
        of_character = {c: self.ids[c] for c in characters if c in self.ids}
        of_character |= {c: len(pieces) + i for i, c in enumerate(without_piece)}
        self.of_character = of_character
        """the symbol of each character"""
        self.size = len(pieces) + len(without_piece)
        """the number of symbols"""
        self.rows = [
            [of_character[c] for c in piece.piece] if piece.piece in self.ids else [i]
            for i, piece in enumerate(pieces)
        ]
        """the symbols of each id"""
        self._symbols = np.array([symbol for row in self.rows for symbol in row], np.int64)
        self._lengths = np.array([len(row) for row in self.rows], np.int64)
        self._starts = np.cumsum(self._lengths) - self._lengths
        self._is_control = np.array([piece.type == CONTROL_TYPE for piece in pieces])
        has_words = all(SPACE not in piece[1:] for piece in self.ids)
        begins_word = np.array([piece.piece.startswith(SPACE) for piece in pieces])
        self._begins_word = self._is_control | (begins_word & has_words)

    def spell(self, sentences: Sentences, keys: Hashes) -> Spelled:
        """Return the symbols of texts, each of which has a key.

        A word begins with its space; if some pieces have a space inside, a text is one word.
        """
        ids = sentences.ids.astype(np.int64)
        lengths = self._lengths[ids]
        starts = np.cumsum(lengths) - lengths  # where each id begins among all symbols
        everywhere = np.arange(int(lengths.sum()))
        texts = np.repeat(np.arange(len(keys)), sentences.lengths)  # of each id
        texts = np.repeat(texts, lengths)  # of each symbol
        begins_word = self._begins_word[ids]
        begins_word[1:] |= self._is_control[ids[:-1]]
        pieces = np.full(len(everywhere), -1, np.int64)
        pieces[starts] = ids
        places_in_text = everywhere - starts[sentences.offsets[:-1]][texts]
        return Spelled(
            symbols=self._symbols[everywhere + np.repeat(self._starts[ids] - starts, lengths)],
            texts=texts,
            words=np.repeat(np.cumsum(begins_word), lengths),
            pieces=pieces,
            keys=hash_integers(keys[texts], places_in_text),
        )
