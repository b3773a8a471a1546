"""A model of a run without PyTorch, which takes a second to import and is not always needed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.recipe.config import Config
from nmt.run.checkpoint_files import Array, read_arrays
from nmt.run.directory import LoadedModel


@dataclass(frozen=True)
class StoredModel:
    """The weights of a run as arrays, with the configuration and tokenizer of the run."""

    config: Config
    tokenizer: Tokenizer
    arrays: Mapping[str, Array]
    """the weights by their names in the model"""
    path: Path
    """the folder of the weights"""

    @classmethod
    def read(cls, config: Config, tokenizer: Tokenizer, folder: Path) -> Self | None:
        """Read the weights in a checkpoint folder; None if they cannot be used.

        They hold NaN or infinity, or do not fit the tokenizer. The error of `load_run`, which reads
        them for PyTorch, then says what is wrong.

        Raises:
            CheckpointError: the weights are missing or damaged.
        """
        arrays = read_arrays(folder)
        is_finite = all(np.isfinite(array.sum()) for array in arrays.values())
        if not is_finite or not _fits_tokenizer(config, tokenizer, arrays):
            return None
        return cls(config, tokenizer, arrays, folder)

    @cached_property
    def loaded_in_torch(self) -> LoadedModel:
        """The same with PyTorch's model, which is built on the CPU when it is first asked for.

        Raises:
            CheckpointError: the weights are those of another model than the configuration's.
        """
        import torch

        from nmt.run.checkpoint import load_into
        from nmt.run.load_run import build_model

        model = build_model(self.config, self.tokenizer)
        weights = {name: torch.tensor(array) for name, array in self.arrays.items()}
        load_into(model, weights, self.path)
        return LoadedModel(self.config, self.tokenizer, model.eval(), self.path)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the arrays alone, not what was made of them."""
        return StoredModel, (self.config, self.tokenizer, self.arrays, self.path)


def _fits_tokenizer(config: Config, tokenizer: Tokenizer, arrays: Mapping[str, Array]) -> bool:
    """Whether the embeddings have a row for each piece of the vocabulary, as PyTorch's model has.

    The C library looks up the ids of a text without a check. What is shared by both languages must
    have the same pieces in both.
    """
    source, target = tokenizer.source, tokenizer.target
    is_one = tokenizer.shared or config.model.embeddings != "shared"
    if not is_one and source.pieces != target.pieces:
        return False
    sizes = {"source": source.size, "target": target.size, "output": target.size}
    return all(
        weight.ndim > 0 and len(weight) == sizes.get(side)
        for name, weight in arrays.items()
        for side, is_embedding, _ in [name.partition("_embedding.")]
        if is_embedding
    )


def arrays_of_run(loaded: LoadedModel | StoredModel) -> Mapping[str, Array]:
    """Return all weights of a run, {name in the model: array}, in whichever form it is loaded."""
    if isinstance(loaded, StoredModel):
        return loaded.arrays
    from nmt.run.checkpoint import arrays_of

    return arrays_of(loaded.model)
