"""A model ready for use: configuration, tokenizer, and weights as arrays or in PyTorch.

PyTorch takes a second to import, and the C library translates without it. So PyTorch's model is
made when something asks for it.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
import numpy.typing as npt

from nmt.data.text.given_texts import read_pairs, read_texts
from nmt.data.tokens.alignment_model import FILE, AlignmentModel
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, SubwordModel, Tokenizer
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config
from nmt.run.checkpoint_files import Array, check_finite, digest_of, read_arrays
from nmt.run.directory import find_run, weights_folder

if TYPE_CHECKING:
    import torch

    from nmt.data.tokens.batch import Batch
    from nmt.model.transformer import Transformer


Side = Literal["source", "target"]
"""which language a text is in"""
_making = threading.RLock()
"""held while PyTorch's model is made, which a server does in a thread while others translate"""


@dataclass(eq=False)
class LoadedModel:
    """A model, trained or not, with the configuration and tokenizer that it needs to translate."""

    config: Config
    tokenizer: Tokenizer
    weights: "Mapping[str, Array] | Transformer"
    """arrays by their names in the model; PyTorch's model as soon as something has asked for it"""
    path: Path
    """the folder of the weights; during training, the run directory"""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """text that training stores with the weights, see `adapter.AdapterOrigin`"""
    aligner: AlignmentModel | None = None
    """what finds the words of data.memory.marks; None: the model has not learnt them"""

    @property
    def is_in_torch(self) -> bool:
        """Whether PyTorch's model is there, in which somebody may have changed modules."""
        return not isinstance(self.weights, Mapping)

    @property
    def model(self) -> "Transformer":
        """PyTorch's model; it is made of the arrays on the CPU, in eval mode, if it is not there.

        Raises:
            CheckpointError: the weights are those of another model than the configuration's.
            ConfigError: see `build_model`.
        """
        with _making:
            if isinstance(self.weights, Mapping):
                import torch

                from nmt.run.checkpoint import load_into

                model = build_model(self.config, self.tokenizer)
                tensors = {name: torch.from_numpy(array) for name, array in self.weights.items()}
                load_into(model, tensors, self.path)
                self.weights = model.eval()
            return self.weights

    @property
    def arrays(self) -> Mapping[str, Array]:
        """All weights, {name in the model: array}; those of a model on the CPU share its memory."""
        weights = self.weights  # another thread may make PyTorch's model of them
        if isinstance(weights, Mapping):
            return weights
        return {name: p.detach().cpu().numpy() for name, p in weights.named_parameters()}

    @property
    def digest(self) -> str:
        """16 hex digits of a SHA-256 of all weights, and of their names, types and shapes."""
        described = (
            (f"{name} {array.dtype} {array.shape}", np.ascontiguousarray(array).view(np.uint8))
            for name, array in sorted(self.arrays.items())
        )
        return digest_of(described)[:16]

    @property
    def device_type(self) -> str:
        """The kind of device with the weights, such as "cpu"."""
        return next(self.model.parameters()).device.type if self.is_in_torch else "cpu"

    @overload
    def encode(  # type: ignore[overload-overlap]
        self, texts: str, side: Side = "source"
    ) -> list[int]: ...

    @overload
    def encode(self, texts: Iterable[str], side: Side = "source") -> list[list[int]]: ...

    def encode(
        self, texts: str | Iterable[str], side: Side = "source"
    ) -> list[int] | list[list[int]]:
        """Return the ids of a text, the last one EOS; of several texts, a list of each one's ids.

        Raises:
            DataError: `texts` is neither a string nor an iterable of strings.
        """
        vocabulary = self._vocabulary(side)
        if isinstance(texts, str):
            return vocabulary.encode(list(read_texts([texts], "texts")))[0]
        return vocabulary.encode(list(read_texts(texts, "texts")))

    @overload
    def decode(self, ids: Sequence[int], side: Side = "target") -> str: ...

    @overload
    def decode(
        self,
        ids: "Sequence[Sequence[int]] | torch.Tensor | npt.NDArray[np.integer]",
        side: Side = "target",
    ) -> list[str]: ...

    def decode(self, ids: object, side: Side = "target") -> str | list[str]:
        """Return the text of a list of ids; of a list of such lists, or a tensor (B, T), each text.

        Padding, BOS and EOS are ignored. A tensor (T,) is one text, which its type does not show;
        an empty list has no texts.

        Raises:
            DataError: `ids` is something else, or has an id that is not in the vocabulary.
        """
        vocabulary = self._vocabulary(side)
        rows = [_as_list(each) for each in _check_list(_as_list(ids))]
        is_one_text = any(isinstance(each, int) for each in rows)
        checked = [_check_ids(row, vocabulary.size) for row in ([rows] if is_one_text else rows)]
        texts = vocabulary.decode(checked)
        return texts[0] if is_one_text else texts

    def batch(self, sources: Iterable[str], targets: Iterable[str] | None = None) -> "Batch":
        """Return sentence pairs as rows of ids on the device of the model, for its `forward`.

        Without `targets`, each is empty: EOS alone.

        Raises:
            DataError: a side is not several strings, there are none, or not as many of both.
        """
        from nmt.data.tokens.batch import collate  # it imports PyTorch

        sources = list(read_texts(sources, "sources"))
        pairs = read_pairs(sources, [""] * len(sources) if targets is None else targets)
        if not pairs[0]:
            raise DataError("a batch needs at least one pair of texts, got none")
        store = TokenStore.of(self.encode(pairs[0]), self.encode(pairs[1], "target"))
        device = next(self.model.parameters()).device
        return collate(store, np.arange(len(store))).to(device)

    def _vocabulary(self, side: Side) -> SubwordModel:
        if side not in ("source", "target"):
            raise DataError(f"side is {side!r}, expected 'source' or 'target'")
        return self.tokenizer.source if side == "source" else self.tokenizer.target


def _as_list(ids: object) -> object:
    """Return a tensor or an array as a list; anything else as it is."""
    return ids.tolist() if hasattr(ids, "tolist") else ids


def _check_list(ids: object) -> list[object]:
    if isinstance(ids, list | tuple):
        return list(ids)
    raise DataError(
        f"ids has {ids!r:.60} of type {type(ids).__name__}; expected a list of ids, or a list of "
        "such lists"
    )


def _check_ids(ids: object, size: int) -> list[int]:
    """Return the ids of one text, all of which a vocabulary of this size has."""
    checked = []
    for token in _check_list(ids):
        if not isinstance(token, int) or not 0 <= token < size:
            raise DataError(
                f"ids has {token!r:.60}; expected whole numbers below {size:,}, the size of the "
                "vocabulary"
            )
        checked.append(token)
    return checked


def build_model(config: Config, tokenizer: Tokenizer) -> "Transformer":
    """Return a Transformer with random weights, with the vocabulary sizes of `tokenizer`.

    Raises:
        ConfigError: The recipe shares embeddings between two vocabularies that differ. Or the code
            of the model was changed, and checkpoints would not hold all of it.
    """
    from nmt.model.transformer import Transformer

    source, target = tokenizer.source, tokenizer.target
    if config.model.embeddings == "shared" and source.pieces != target.pieces:
        raise ConfigError(
            "model.embeddings: shared needs the same pieces in both languages, but those of the "
            "two tokenizers differ; write embeddings: target"
        )
    model = Transformer(config.model, source.size, target.size, PAD, BOS, EOS)
    _check_is_saved(model)
    return model


def _check_is_saved(model: "Transformer") -> None:
    """Check that the trained parameters, which checkpoints hold, are all that a model has.

    Raises:
        ConfigError: it has a persistent buffer or a frozen parameter.
    """
    from nmt.run.checkpoint import persistent_buffers

    frozen = [name for name, weight in model.named_parameters() if not weight.requires_grad]
    if buffers := persistent_buffers(model):
        raise ConfigError(
            f"the model has the buffer {buffers[0]}, but checkpoints hold parameters alone, and it "
            "would be lost; register it with persistent=False if it can be computed when the model "
            "is built, else make it an nn.Parameter"
        )
    if frozen:
        raise ConfigError(
            f"the model has the frozen parameter {frozen[0]}, but checkpoints hold trained ones "
            "alone, and it would be lost; leave requires_grad as it is, and use its .detach() in "
            "`forward`"
        )


def load_model(
    path: str | Path,
    device: "torch.device | str" = "cpu",
    checkpoint: str = "best",
    adapter: str | Path | None = None,
) -> LoadedModel:
    """Load a run to translate, in eval mode; `path` is a run directory or a checkpoint of one.

    `checkpoint` is best, last, averaged, moving-average or step-N. `adapter`, a run with
    `training.lora`, a checkpoint of one, or a file, is merged into the weights. If `path` is itself
    such a run, its adapter is merged into the weights of its parent. PyTorch is not imported if the
    device is cpu and there is no adapter.

    Raises:
        CheckpointError: `path` is no run directory; or its weights, those of the adapter or of its
            parent are missing, damaged, NaN or infinite.
        DataError: its tokenizer or aligner is missing or damaged.
    """
    directory, folder = find_run(Path(path)), weights_folder(Path(path), checkpoint)
    config = load_config(str(directory.config))
    tokenizer, aligner = Tokenizer.load(directory.tokenizer), None
    if config.data.memory and config.data.memory.marks:
        aligner = AlignmentModel.load(directory.tokenizer / FILE)
    if config.training.lora:
        parent = _load_parent(config, directory.path)
        loaded = LoadedModel(config, tokenizer, parent.arrays, folder, aligner=aligner)
        _merge(loaded, folder)
    else:
        loaded = LoadedModel(config, tokenizer, read_arrays(folder), folder, aligner=aligner)
        if not _fits_tokenizer(loaded):
            _ = loaded.model  # raises an error that says what is wrong
    check_finite(loaded.arrays, folder)
    if adapter is not None:
        given = Path(adapter)
        _merge(loaded, given if given.is_file() else weights_folder(given))
    if str(device) != "cpu":
        loaded.model.to(device)
    return loaded


def _merge(loaded: LoadedModel, adapter: Path) -> None:
    from nmt.run.adapter import merge_adapter  # it imports PyTorch

    merge_adapter(loaded.model, adapter)


def _fits_tokenizer(loaded: LoadedModel) -> bool:
    """Whether the embeddings have a row for each piece of the vocabulary, as PyTorch's model has.

    The C library looks up the ids of a text without a check. What is shared by both languages must
    have the same pieces in both.
    """
    tokenizer = loaded.tokenizer
    source, target = tokenizer.source, tokenizer.target
    is_one = tokenizer.shared or loaded.config.model.embeddings != "shared"
    if not is_one and source.pieces != target.pieces:
        return False
    sizes = {"source": source.size, "target": target.size, "output": target.size}
    return all(
        weight.ndim > 0 and len(weight) == sizes.get(side)
        for name, weight in loaded.arrays.items()
        for side, is_embedding, _ in [name.partition("_embedding.")]
        if is_embedding
    )


def _load_parent(config: Config, path: Path) -> LoadedModel:
    """Load the run that the adapter in the run directory `path` was trained from.

    Raises:
        CheckpointError: The parent cannot be loaded.
    """
    parent = str(config.training.initialize_from)
    _check_chain(config, path)
    try:
        return load_model(parent)
    except CheckpointError as error:
        raise CheckpointError(
            f"{path}: holds an adapter, and its parent cannot be loaded: {error}; if the parent "
            f"has moved, give its new place as `model`, and {path} as `adapter`"
        ) from error


def _check_chain(config: Config, path: Path) -> None:
    """Check that the parents of the adapter in the run directory `path` end in a whole model.

    Raises:
        CheckpointError: an adapter is among its own parents.
    """
    runs = [path.resolve()]
    while config.training.lora:
        try:
            parent = find_run(Path(str(config.training.initialize_from)))
        except CheckpointError:
            return  # the attempt to load it says what is wrong
        if parent.path.resolve() in runs:
            raise CheckpointError(
                f"{path}: holds an adapter that is its own parent (training.initialize_from: "
                f"{config.training.initialize_from}); give the parent that it was trained "
                f"from as `model`, and {path} as `adapter`"
            )
        runs.append(parent.path.resolve())
        config = load_config(str(parent.config))
