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
"""how it is written where it cannot be avoided"""
SHARED, SOURCE, TARGET = "tokenizer.model", "source.model", "target.model"

# below this many texts a thread costs more than it brings
_TEXTS_PER_THREAD = 256
ERRORS_ONLY = 2

sentencepiece.set_min_log_level(ERRORS_ONLY)


class Tokenizer:
    """The source side and the target side of a vocabulary; the same model where it is shared."""

    def __init__(self, source: bytes, target: bytes | None, where: str = "tokenizer") -> None:
        """Take serialised SentencePiece models; `target` None shares the source's.

        Raises:
            DataError: naming `where`, for bytes that are no model or have other special ids.
        """
        self._models = [source] if target is None else [source, target]
        self._source = _load(source, where)
        self._target = self._source if target is None else _load(target, where)

    @classmethod
    def load(cls, directory: Path) -> "Tokenizer":
        """Read a tokenizer saved in `directory`.

        Raises:
            DataError: the directory holds none, or a damaged one.
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
        for name in (SHARED, SOURCE, TARGET):  # of another tokenizer, whose names are others
            (directory / name).unlink(missing_ok=True)
        names = [SHARED] if self.shared else [SOURCE, TARGET]
        for name, model in zip(names, self._models, strict=True):
            (directory / name).write_bytes(model)

    def differs_from(self, other: "Tokenizer") -> bool:
        """Whether an id means something else to the other."""
        mine = (self.source_vocabulary, self.target_vocabulary)
        return mine != (other.source_vocabulary, other.target_vocabulary)

    @property
    def shared(self) -> bool:
        """Whether both languages use one vocabulary."""
        return len(self._models) == 1

    @property
    def source_model(self) -> bytes:
        """The serialised SentencePiece model of the source side."""
        return self._models[0]

    @property
    def target_model(self) -> bytes:
        """The serialised SentencePiece model of the target side; the same one where shared."""
        return self._models[-1]

    @property
    def source_vocabulary_size(self) -> int:
        """Entries of the source vocabulary, the four special symbols included."""
        return int(self._source.get_piece_size())

    @property
    def target_vocabulary_size(self) -> int:
        """Entries of the target vocabulary, the four special symbols included."""
        return int(self._target.get_piece_size())

    @property
    def source_vocabulary(self) -> list[str]:
        """The spelling of each source-side id."""
        return _pieces(self._source)

    @property
    def target_vocabulary(self) -> list[str]:
        """The piece of each target-side id, the unknown as `<unk>`."""
        return _pieces(self._target)

    def target_bytes(self) -> list[bytes]:
        """What each target-side id adds to a text, in UTF-8; PAD, BOS and EOS nothing.

        A piece that begins a word begins with its space, also where the text begins.
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
        """The ids of each text, the last one EOS; on all cores unless `threads` says how many."""
        return _encode(self._source, texts, threads)

    def encode_target(self, texts: Sequence[str], threads: int | None = None) -> list[list[int]]:
        """The ids of each text, the last one EOS (and no BOS in front)."""
        return _encode(self._target, texts, threads)

    def resample_source(self, ids: Sequence[int], alpha: float, seed: int) -> list[int]:
        """Another segmentation of the text that the source ids spell; see `_resample`."""
        return _resample(self._source, ids, alpha, seed)

    def resample_target(self, ids: Sequence[int], alpha: float, seed: int) -> list[int]:
        """Another segmentation of the text that the target ids spell; see `_resample`."""
        return _resample(self._target, ids, alpha, seed)

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """The target-side text of each sequence; PAD, BOS and EOS leave no trace."""
        kept = [[int(i) for i in row if i not in (PAD, BOS, EOS)] for row in ids]
        texts: list[str] = self._target.decode(kept) if kept else []
        # at word level the unknown symbol brings its own space, also where the text begins
        return [text[1:] if text.startswith(" " + UNKNOWN) else text for text in texts]

    def source_pieces(self, text: str) -> list[str]:
        """The pieces that the encoder sees for `text`, the last one `</s>`."""
        return [str(self._source.id_to_piece(i)) for i in self.encode_source([text])[0]]

    def source_spellings(self, text: str) -> list[str]:
        """The pieces of `text`, spaces as "▁" and the unknown as it stands in the text; no EOS."""
        pieces: list[str] = self._source.encode(text, out_type=str)
        return pieces

    def target_spellings(self, ids: Sequence[int]) -> list[str]:
        """The pieces that `decode` puts together; the unknown as it stands in what it writes."""
        unknown = self._target.decode([UNK]).replace(" ", "▁")
        pieces = self.target_pieces(ids)
        return [unknown if i == UNK else piece for i, piece in zip(ids, pieces, strict=True)]

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        """The piece of each target-side id, the unknown as `<unk>`."""
        return [str(self._target.id_to_piece(int(i))) for i in ids]


def _pieces(model: Any) -> list[str]:
    return [str(model.id_to_piece(i)) for i in range(model.get_piece_size())]


def _encode(model: Any, texts: Sequence[str], threads: int | None) -> list[list[int]]:
    threads = threads or min(available_cores(), 1 + len(texts) // _TEXTS_PER_THREAD)
    ids: list[list[int]] = model.encode(list(texts), add_eos=True, num_threads=threads)
    return ids


def _resample(model: Any, ids: Sequence[int], alpha: float, seed: int) -> list[int]:
    """Draw a segmentation of what `ids` (the last one EOS) spell; a function of its arguments.

    BPE-dropout (Provilkov et al., 2020) leaves out each merge with probability alpha; a unigram
    model draws a segmentation with probability proportional to its likelihood to the power alpha
    (Kudo, 2018). A text with a symbol unknown to the vocabulary keeps its ids: its spelling is
    lost.
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
            raise RuntimeError("SentencePiece takes no bytes for no argument")
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except (RuntimeError, OSError) as error:
        raise DataError(
            f"{where}: no SentencePiece model, or a damaged one; prepare again"
        ) from error
    found = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if found != (PAD, UNK, BOS, EOS):
        raise DataError(
            f"{where}: its ids of padding, unknown, begin and end are {found}, expected "
            f"{(PAD, UNK, BOS, EOS)}; use a tokenizer made by `nmt prepare`"
        )
    return processor
