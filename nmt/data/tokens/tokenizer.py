"""Text to ids and back: SentencePiece (BPE, unigram, character or word) behind one interface.

The special symbols have fixed ids and no spelling: a literal "</s>" in the text is text.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from nmt.errors import DataError
from nmt.processor import available_cores

PAD, UNK, BOS, EOS = 0, 1, 2, 3

UNKNOWN = "⁇"
"""How the unknown symbol is written in a translation that cannot avoid it."""
SHARED, SOURCE, TARGET = "tokenizer.model", "source.model", "target.model"

# With fewer texts for each thread, starting it takes longer than it saves.
_TEXTS_PER_THREAD = 256
ERRORS_ONLY = 2
"""SentencePiece's level of logging that hides warnings."""

sentencepiece.set_min_log_level(ERRORS_ONLY)


class Tokenizer:
    """The SentencePiece models of source and target; both may share one model."""

    def __init__(self, source: bytes, target: bytes | None, where: str = "tokenizer") -> None:
        """Take serialised SentencePiece models; if `target` is None, both sides use `source`.

        Raises:
            DataError: naming `where`: not a model, or one with other special ids.
        """
        self.models = [source] if target is None else [source, target]
        """the serialised SentencePiece models: a shared one, or those of source and target"""
        self._source = _load(source, where)
        self._target = self._source if target is None else _load(target, where)

    @classmethod
    def load(cls, directory: Path) -> "Tokenizer":
        """Read a tokenizer saved in `directory`.

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
        return cls(models[0], models[1] if len(models) > 1 else None, str(directory))

    def save(self, directory: Path) -> None:
        """Write `tokenizer.model` (shared), or `source.model` and `target.model`."""
        directory.mkdir(parents=True, exist_ok=True)
        for name in (SHARED, SOURCE, TARGET):  # may be files of another tokenizer
            (directory / name).unlink(missing_ok=True)
        names = [SHARED] if self.shared else [SOURCE, TARGET]
        for name, model in zip(names, self.models, strict=True):
            (directory / name).write_bytes(model)

    def differs_from(self, other: "Tokenizer") -> bool:
        """Return whether any id stands for another piece in the other tokenizer."""
        mine = (self.source_vocabulary, self.target_vocabulary)
        return mine != (other.source_vocabulary, other.target_vocabulary)

    @property
    def shared(self) -> bool:
        """Return whether both languages use one vocabulary."""
        return len(self.models) == 1

    @property
    def source_vocabulary_size(self) -> int:
        """Return the size of the source vocabulary, with the four special symbols."""
        return int(self._source.get_piece_size())

    @property
    def target_vocabulary_size(self) -> int:
        """Return the size of the target vocabulary, with the four special symbols."""
        return int(self._target.get_piece_size())

    @property
    def source_vocabulary(self) -> list[str]:
        """Return the piece of each source-side id, the unknown symbol as `<unk>`."""
        return _pieces(self._source)

    @property
    def target_vocabulary(self) -> list[str]:
        """Return the piece of each target-side id, the unknown symbol as `<unk>`."""
        return _pieces(self._target)

    def target_bytes(self) -> list[bytes]:
        """Return what each target-side id adds to a text, in UTF-8; PAD, BOS and EOS add nothing.

        A piece at the start of a word includes the space before it, even at the start of a text.
        """
        model = self._target
        spelled = [piece.replace("▁", " ").encode("utf-8") for piece in _pieces(model)]
        for i, piece in enumerate(self.target_vocabulary):
            if model.is_control(i):
                spelled[i] = b""
            elif model.is_byte(i):
                spelled[i] = bytes([int(piece[3:-1], 16)])
        spelled[UNK] = str(model.decode([UNK])).encode("utf-8")
        return spelled

    def encode_source(self, texts: Sequence[str], threads: int | None = None) -> list[list[int]]:
        """Return the ids of each source text, with EOS at the end.

        It uses `threads` threads, or all cores if None.
        """
        return _encode(self._source, texts, threads)

    def encode_target(self, texts: Sequence[str], threads: int | None = None) -> list[list[int]]:
        """Return the ids of each target text, with EOS at the end (and no BOS)."""
        return _encode(self._target, texts, threads)

    def resample_source(self, ids: Sequence[int], alpha: float, seed: int) -> list[int]:
        """Return a random segmentation of the text of source ids; see `_resample`."""
        return _resample(self._source, ids, alpha, seed)

    def resample_target(self, ids: Sequence[int], alpha: float, seed: int) -> list[int]:
        """Return a random segmentation of the text of target ids; see `_resample`."""
        return _resample(self._target, ids, alpha, seed)

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the target-side text of each sequence, without PAD, BOS and EOS."""
        kept = [[int(i) for i in row if i not in (PAD, BOS, EOS)] for row in ids]
        texts: list[str] = self._target.decode(kept) if kept else []
        # at word level the unknown symbol includes a space, even at the start of a text
        return [text[1:] if text.startswith(" " + UNKNOWN) else text for text in texts]

    def source_pieces(self, text: str) -> list[str]:
        """Return the pieces of a source text as the encoder receives them, `</s>` last."""
        return [str(self._source.id_to_piece(i)) for i in self.encode_source([text])[0]]

    def source_spellings(self, text: str) -> list[str]:
        """Return the pieces of a source text without EOS; unknown ones as they are in the text."""
        pieces: list[str] = self._source.encode(text, out_type=str)
        return pieces

    def target_spellings(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces that `decode` joins; the unknown symbol as `decode` writes it."""
        unknown = self._target.decode([UNK]).replace(" ", "▁")
        pieces = self.target_pieces(ids)
        return [unknown if i == UNK else piece for i, piece in zip(ids, pieces, strict=True)]

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the piece of each of the target-side ids, the unknown symbol as `<unk>`."""
        return [str(self._target.id_to_piece(int(i))) for i in ids]


def _pieces(model: Any) -> list[str]:
    return [str(model.id_to_piece(i)) for i in range(model.get_piece_size())]


def _encode(model: Any, texts: Sequence[str], threads: int | None) -> list[list[int]]:
    threads = threads or min(available_cores(), 1 + len(texts) // _TEXTS_PER_THREAD)
    ids: list[list[int]] = model.encode(list(texts), add_eos=True, num_threads=threads)
    return ids


def _resample(model: Any, ids: Sequence[int], alpha: float, seed: int) -> list[int]:
    """Draw a segmentation of the text that `ids` spell; equal arguments give equal results.

    BPE-dropout (Provilkov et al., 2020) leaves out each merge with probability alpha; a unigram
    model draws a segmentation with probability proportional to its likelihood to the power alpha
    (Kudo, 2018). A text with an unknown symbol keeps its ids, because ids do not say how the
    unknown symbol was spelled.
    """
    plain = list(ids[:-1])
    if UNK in plain:
        return [*plain, EOS]
    sentencepiece.set_random_generator_seed(seed)
    text = model.decode(plain)
    sampled: list[int] = model.encode(text, enable_sampling=True, alpha=alpha, nbest_size=-1)
    return [*sampled, EOS]


def _load(model: bytes, where: str) -> Any:
    try:
        if not model:
            raise RuntimeError("SentencePiece ignores an argument without bytes")
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except (RuntimeError, OSError) as error:
        raise DataError(
            f"{where}: not a SentencePiece model, or a damaged one; prepare again"
        ) from error
    found = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if found != (PAD, UNK, BOS, EOS):
        raise DataError(
            f"{where}: its ids of padding, unknown, begin and end are {found}, expected "
            f"{(PAD, UNK, BOS, EOS)}; use a tokenizer made by `nmt prepare`"
        )
    return processor
