"""Text to ids and back, with a SentencePiece model: BPE, unigram, character or word.

The special symbols PAD, UNK, BOS and EOS have fixed ids and are never read from text: a literal
"</s>" is plain text.
"""

import functools
import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from nmt.data.text.words import grapheme_clusters, has_symbol
from nmt.errors import DataError
from nmt.machine.memory import check_threads
from nmt.machine.processor import available_cores

PAD, UNK, BOS, EOS = 0, 1, 2, 3
"""The ids of the special symbols: padding, unknown, begin and end of a sentence."""
UNKNOWN = "⁇"
"""The text of the unknown symbol in a translation."""
SPACE = "▁"
"""What SentencePiece writes for a space; the character itself is read as a space, too."""
SHARED, SOURCE, TARGET = "tokenizer.model", "source.model", "target.model"
"""The names of the files of a tokenizer."""

_TEXTS_PER_THREAD = 256  # with fewer, starting a thread takes longer than it saves
# So few texts are decoded in less time than SentencePiece needs to start a thread for them.
_DECODED_WITHOUT_THREAD = 16
_TAG = re.compile("(>>[^<> ]+<<) ?")
ERRORS_ONLY = 2
"""The log level of SentencePiece that hides warnings."""
HIDDEN = -1.0
"""The score of hidden pieces: unused or control pieces that stand for text. They can be decoded;
encoding gives one only for an unknown part of a text that is spelled like it, as Marian's
tokenizers do. `foreign_vocabulary.py` needs them, and BPE needs control pieces, as it would merge
other pieces into unused ones."""

sentencepiece.set_min_log_level(ERRORS_ONLY)


class SubwordModel:
    """A SentencePiece model: the vocabulary of one language, or of both."""

    def __init__(self, model: bytes, where: str = "tokenizer") -> None:
        """Load a serialised SentencePiece model; `where` names it in error messages.

        Raises:
            DataError: not a model, or its ids of PAD, UNK, BOS and EOS are not 0 to 3.
        """
        self.model = model
        """the serialised SentencePiece model"""
        try:
            if not model:  # SentencePiece would ignore the argument
                raise RuntimeError("no bytes")
            self._processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, OSError) as error:
            raise DataError(
                f"{where}: not a SentencePiece model, or a damaged one; prepare again"
            ) from error
        processor = self._processor
        ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if ids != (PAD, UNK, BOS, EOS):
            raise DataError(
                f"{where}: its ids of padding, unknown, begin and end are {ids}, expected "
                f"{(PAD, UNK, BOS, EOS)}; use a tokenizer made by `nmt prepare`"
            )

    def __reduce__(self) -> tuple[object, ...]:
        return SubwordModel, (self.model,)

    @functools.cached_property
    def pieces(self) -> list[str]:
        """The piece of each id: `▁` stands for a space, `<unk>` for the unknown symbol."""
        return [str(self._processor.id_to_piece(i)) for i in range(self.size)]

    @property
    def size(self) -> int:
        """The size of the vocabulary, with the four special symbols."""
        return int(self._processor.get_piece_size())

    @functools.cached_property
    def tags(self) -> dict[str, int]:
        """The id of each tag, such as `>>fr<<`, which says something about the text after it.

        It may ask for a target language, or say where a training pair comes from. A tag is no part
        of the text. Models of OPUS-MT with several target languages have tags, too.
        """
        if b"<<" not in self.model:  # then the pieces need not be listed
            return {}
        return {piece: i for i, piece in enumerate(self.pieces) if _TAG.fullmatch(piece)}

    def encode(self, texts: Sequence[str], threads: int | None = None) -> list[list[int]]:
        """Return the ids of each text, with EOS at the end and without BOS.

        Tags at the start of a text become their ids. `threads` None: as many as make it faster.

        Raises:
            TypeError: `texts` is one text, whose characters would be taken for texts.
        """
        if isinstance(texts, str):
            raise TypeError(f"expected a list of texts, got the text {texts[:40]!r}; write [text]")
        if not self.tags:
            return self._encode_plain(list(texts), threads)
        divided = [self.divide_tags(text) for text in texts]
        rows = self._encode_plain([text for _, text in divided], threads)
        return [[*tags, *row] for (tags, _), row in zip(divided, rows, strict=True)]

    def _encode_plain(self, texts: list[str], threads: int | None) -> list[list[int]]:
        """Return the ids of texts without tags, each with EOS."""
        if len(texts) <= 1:  # without a thread, whose start takes longer than a sentence
            rows = [self._processor.encode(text, add_eos=True) for text in texts]
        else:
            threads = threads or min(available_cores(), 1 + len(texts) // _TEXTS_PER_THREAD)
            check_threads(threads)
            rows = self._processor.encode(texts, add_eos=True, num_threads=threads)
        for text, row in zip(texts, rows, strict=True):
            if UNK in row:
                self.find_hidden(self._processor, text, row)
        return list(rows)

    def find_hidden(self, processor: Any, text: str, ids: list[int]) -> None:
        """Replace unknown symbols in `ids` by hidden pieces that are spelled like the unknown text.

        `processor` is the SentencePiece processor that made the ids of `text`; they may have EOS.
        """
        if self._hidden:
            # unknown pieces are spelled as in the normalised text
            for i, piece in enumerate(processor.encode(text, out_type=str)):
                if ids[i] == UNK:
                    ids[i] = self._hidden.get(piece, UNK)

    def divide_tags(self, text: str) -> tuple[list[int], str]:
        """Return the ids of the tags at the start of a text, and the text after them."""
        tags, rest = divide_tags(text, self.tags)
        return [self.tags[tag] for tag in tags], rest

    def tag_length(self, text: str) -> int:
        """Return how many characters the tags at the start of a text have, with their spaces."""
        return len(text) - len(divide_tags(text, self.tags)[1])

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each sequence of ids; PAD, BOS and EOS are ignored."""
        kept = [[int(i) for i in row if i not in (PAD, BOS, EOS)] for row in ids]
        if self._hidden_controls:
            return [self._decode_hidden(row) for row in kept]
        texts: list[str]
        if len(kept) <= _DECODED_WITHOUT_THREAD:
            texts = [self._processor.decode(row) if row else "" for row in kept]
        else:  # several threads would take longer than decoding a batch
            texts = self._processor.decode(kept, num_threads=1)
        # at word level the unknown symbol includes a space, even at the start of a text
        return [text[1:] if text.startswith(" " + UNKNOWN) else text for text in texts]

    @functools.cached_property
    def _hidden(self) -> dict[str, int]:
        """The ids of the hidden pieces (see `HIDDEN`)."""
        processor = self._processor
        never_read = [
            i
            for i in range(EOS + 1, self.size)
            if processor.is_unused(i) or processor.is_control(i)
        ]
        return {self.pieces[i]: i for i in never_read if processor.get_score(i) == HIDDEN}

    @functools.cached_property
    def _hidden_controls(self) -> set[int]:
        """The ids of the hidden pieces that are control pieces, which SentencePiece leaves out."""
        return {i for i in self._hidden.values() if self._processor.is_control(i)}

    def _decode_hidden(self, ids: Sequence[int]) -> str:
        """Return the text of ids, hidden ones included, which SentencePiece would leave out."""
        # SentencePiece copies a piece that it does not know, such as one with a zero byte.
        hidden = self._hidden_controls
        pieces = [f"{self.pieces[i]}\0" if i in hidden else self.pieces[i] for i in ids]
        text = str(self._processor.decode(pieces)) if pieces else ""
        if ids and ids[0] in hidden:  # it keeps its space, which is no part of the text
            text = text.removeprefix("▁")
        return text.replace("\0", "").replace("▁", " ")

    def split(self, text: str) -> list[str]:
        """Return the pieces of a text without EOS; an unknown piece is spelled as in the text.

        A tag at the start of the text, such as ">>fr<<", is a piece of its own.
        """
        tags, plain = self.divide_tags(text)
        pieces: list[str] = self._processor.encode(plain, out_type=str)
        return [*(self.pieces[tag] for tag in tags), *pieces]

    def unknown(self, text: str) -> list[str]:
        """Return the characters of a text that its ids do not keep, each as often as it occurs.

        These are the characters that the vocabulary lacks, at word level the words, and "▁", which
        SentencePiece reads as a space.
        """
        _tag_ids, plain = self.divide_tags(text)
        # neighbours that are unknown are one piece
        lacked = (p for p in self._segments(plain) if p.id == UNK and p.piece not in self._hidden)
        parts = " ".join(piece.surface for piece in lacked)
        is_of_words = self._is_of_words
        unknown = [*filter(None, parts.split(" "))] if is_of_words else [*parts.replace(" ", "")]
        return unknown + [SPACE] * plain.count(SPACE)

    def _segments(self, plain: str) -> Any:
        """Return the pieces of a text without tags: ids, spellings and places in its UTF-8."""
        from sentencepiece import sentencepiece_pb2

        proto: Any = sentencepiece_pb2.SentencePieceText()
        proto.ParseFromString(self._processor.encode(plain, out_type="serialized_proto"))
        return proto.pieces

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the characters [start, end) of the text that each piece of `split` stands for.

        They are characters of `text` as it is, not normalised; a span includes the spaces before a
        word. Some characters may be in no span.
        """
        _tag_ids, plain = self.divide_tags(text)
        plain_start = len(text) - len(plain)
        spans = [tag.span(1) for tag in _TAG.finditer(text, 0, plain_start)]
        encoded = plain.encode("utf-8")
        last_byte, last_character = 0, plain_start  # the end of the last piece in both units
        for piece in self._segments(plain):  # their offsets are bytes of `encoded`
            start = last_character + len(encoded[last_byte : piece.begin].decode("utf-8"))
            last_character = start + len(encoded[piece.begin : piece.end].decode("utf-8"))
            last_byte = piece.end
            spans.append((start, last_character))
        return spans

    @functools.cached_property
    def byte_ids(self) -> frozenset[int]:
        """The ids of bytes, which spell the characters that have no piece of their own."""
        if b"<0x" not in self.model:  # then the pieces need not be looked at
            return frozenset()
        return frozenset(i for i in range(self.size) if self._processor.is_byte(i))

    def unknown_characters(self, text: str) -> set[int]:
        """Return the indices of the characters of a text, without tags, that are unknown.

        A vocabulary of words knows the characters of its words. Letters that are spelled in bytes
        count as known, as bytes are meant for them; symbols such as emoji do not, nor do the signs
        on them: only bytes spell the keycap of "1".
        """
        unknown: set[int] = set()
        in_bytes: set[int] = set()
        ids = self._encode_plain([text], 1)[0][:-1]  # without EOS
        for piece, (start, end) in zip(ids, self.spans(text), strict=True):
            if piece == UNK:
                unknown.update(i for i in range(start, end) if not self._is_in_a_word(text[i]))
            elif piece in self.byte_ids:
                in_bytes.update(range(start, end))
        for start, end in grapheme_clusters(text) if in_bytes else ():
            if has_symbol(text[start:end]):
                unknown |= in_bytes.intersection(range(start, end))
        return unknown

    def _is_in_a_word(self, character: str) -> bool:
        """Return whether a character is white space, or in a piece of a vocabulary of words."""
        if character.isspace():
            return True
        return self._is_of_words and self._characters.issuperset(
            str(self._processor.normalize(character)).replace("▁", "")
        )

    @property
    def _is_of_words(self) -> bool:
        return str(self._processor.decode([UNK])).startswith(" ")

    @functools.cached_property
    def _characters(self) -> frozenset[str]:
        return frozenset("".join(self.pieces[EOS + 1 :]))

    def piece_bytes(self) -> list[bytes]:
        """Return the UTF-8 bytes that each id adds to a text; PAD, BOS and EOS add none.

        A piece that begins a word begins with a space, even at the start of a text.
        """
        spelled = [piece.replace("▁", " ").encode("utf-8") for piece in self.pieces]
        for i, piece in enumerate(self.pieces):
            if self._processor.is_control(i) and i not in self._hidden_controls:
                spelled[i] = b""
            elif self._processor.is_byte(i):
                spelled[i] = bytes([int(piece[3:-1], 16)])  # such as <0xE4>
        spelled[UNK] = str(self._processor.decode([UNK])).encode("utf-8")
        return spelled


def divide_tags(text: str, known: Container[str]) -> tuple[list[str], str]:
    """Return the tags at the start of a text that are in `known`, and the text after them."""
    tags: list[str] = []
    end = 0
    while (tag := _TAG.match(text, end)) and tag[1] in known:
        tags.append(tag[1])
        end = tag.end()
    return tags, text[end:]


class Tokenizer:
    """The vocabularies of source and target, which may be the same."""

    def __init__(self, source: SubwordModel, target: SubwordModel | None = None) -> None:
        """Take the models of both languages; if `target` is None, both use `source`."""
        self.source = source
        self.target = target or source

    @classmethod
    def load(cls, directory: Path) -> "Tokenizer":
        """Load the tokenizer that `save` wrote into `directory`.

        Raises:
            DataError: the tokenizer is missing or damaged.
        """
        names = [SHARED] if (directory / SHARED).is_file() else [SOURCE, TARGET]
        try:
            models = [(directory / name).read_bytes() for name in names]
        except FileNotFoundError as error:
            raise DataError(
                f"{directory}: no tokenizer here; expected {SHARED}, or {SOURCE} and {TARGET}"
            ) from error
        except OSError as error:
            raise DataError(f"{directory}: cannot be read: {error.strerror}") from error
        subwords = [SubwordModel(model, str(directory)) for model in models]
        return cls(*subwords)  # one for both languages, or two

    def save(self, directory: Path) -> None:
        """Write tokenizer.model (shared), or source.model and target.model; remove older ones."""
        directory.mkdir(parents=True, exist_ok=True)
        for name in (SHARED, SOURCE, TARGET):  # an older tokenizer may have other files
            (directory / name).unlink(missing_ok=True)
        if self.shared:
            (directory / SHARED).write_bytes(self.source.model)
        else:
            (directory / SOURCE).write_bytes(self.source.model)
            (directory / TARGET).write_bytes(self.target.model)

    @property
    def shared(self) -> bool:
        """Whether both languages use one vocabulary."""
        return self.source is self.target

    def differs_from(self, other: "Tokenizer") -> bool:
        """Return whether any id of source or target has another piece in the other tokenizer."""
        return (
            self.source.pieces != other.source.pieces or self.target.pieces != other.target.pieces
        )
