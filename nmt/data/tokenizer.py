"""Text to ids and back: SentencePiece (BPE, unigram, character or word) behind one interface.

The paper's section 5.1 shares one byte-pair vocabulary between both languages; `shared: false`
learns one for each. A character vocabulary is the alphabet of the text, cut at `vocabulary_size`;
the other kinds fill it exactly. The special symbols have fixed ids and no spelling: a literal
"</s>" in the text is text.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from nmt.config import TokenizerConfig
from nmt.data.parallel_text import SentencePair
from nmt.errors import DataError
from nmt.processor import available_cores

PAD, UNK, BOS, EOS = 0, 1, 2, 3

UNKNOWN = "⁇"
SHARED, SOURCE, TARGET = "tokenizer.model", "source.model", "target.model"

# SentencePiece silently skips training lines over 4192 bytes; this many characters never exceed it
_CUT = 1000
# below this many texts a thread costs more than it brings
_TEXTS_PER_THREAD = 256
_ERRORS_ONLY = 2

sentencepiece.set_min_log_level(_ERRORS_ONLY)


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
    def train(
        cls, pairs: Iterable[SentencePair], config: TokenizerConfig, directory: Path
    ) -> "Tokenizer":
        """Learn the vocabulary of `pairs`, save it in `directory` and return it.

        `pairs` is iterated once if the vocabulary is shared, else once for each side. The same
        pairs and settings give the same bytes.

        Raises:
            DataError: no text, or a vocabulary size that the text cannot fill.
        """
        if config.shared:
            both = (text for pair in pairs for text in (pair.source, pair.target))
            tokenizer = cls(_train(both, config, "both languages"), None)
        else:
            source = _train((pair.source for pair in pairs), config, "the source language")
            target = _train((pair.target for pair in pairs), config, "the target language")
            tokenizer = cls(source, target)
        tokenizer.save(directory)
        return tokenizer

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
        names = [SHARED] if self.shared else [SOURCE, TARGET]
        for name, model in zip(names, self._models, strict=True):
            (directory / name).write_bytes(model)

    @property
    def shared(self) -> bool:
        """Whether both languages use one vocabulary."""
        return len(self._models) == 1

    @property
    def source_vocabulary_size(self) -> int:
        """Entries of the source vocabulary, the four special symbols included."""
        return int(self._source.get_piece_size())

    @property
    def target_vocabulary_size(self) -> int:
        """Entries of the target vocabulary, the four special symbols included."""
        return int(self._target.get_piece_size())

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

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        """The spelling of each target-side id."""
        return [str(self._target.id_to_piece(int(i))) for i in ids]


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


def _cut(texts: Iterable[str]) -> Iterator[str]:
    """Cut long texts at spaces, so that none is skipped."""
    for text in texts:
        while len(text) > _CUT:
            space = text.rfind(" ", 1, _CUT)
            end = space if space > 0 else _CUT
            yield text[:end]
            text = text[end:]
        yield text


def _train(texts: Iterable[str], config: TokenizerConfig, side: str) -> bytes:
    """Learn one SentencePiece model and return its bytes."""
    model = io.BytesIO()
    exact = config.normalization == "identity"
    failure: list[Exception] = []
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_remembering_failure(_cut(texts), failure),
            model_writer=model,
            model_type=config.kind,
            vocab_size=config.vocabulary_size,
            character_coverage=config.character_coverage,
            byte_fallback=config.byte_fallback,
            normalization_rule_name=config.normalization,
            remove_extra_whitespaces=not exact,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            unk_surface=f" {UNKNOWN}" if config.kind == "word" else UNKNOWN,
            minloglevel=_ERRORS_ONLY,
        )
    except RuntimeError as error:
        if failure:
            raise failure[0] from None
        raise DataError(_explain(str(error), config, side)) from error
    if failure:
        raise failure[0]
    return model.getvalue()


def _remembering_failure(texts: Iterable[str], failure: list[Exception]) -> Iterator[str]:
    """Keep an exception of the reader: SentencePiece's C++ loop would hide it."""
    try:
        yield from texts
    except Exception as error:
        failure.append(error)
        raise


def _explain(message: str, config: TokenizerConfig, side: str) -> str:
    """Say SentencePiece's refusal in our words."""
    key = "tokenizer.vocabulary_size"
    if found := re.search(r"Vocabulary size too high .*<= (\d+)", message):
        return (
            f"{key} is {config.vocabulary_size}, but the training text of {side} allows at most "
            f"{found[1]} {config.kind} entries; set {key} to {found[1]} or less, or add text"
        )
    if found := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
        return (
            f"{key} is {config.vocabulary_size}, but the training text of {side} needs at least "
            f"{found[1]}, one for each character; raise it or lower tokenizer.character_coverage"
        )
    if "sentences_.empty()" in message or "all_chars_count" in message:
        return f"the training text of {side} is blank; expected one sentence per line"
    return f"SentencePiece cannot learn a vocabulary of {side}: {message}"
