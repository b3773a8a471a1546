"""`nmt.Transformer`: the paper's model with its sizes as keywords, and a method `generate`.

`generate` stands here, so that the package of the model imports no search.
"""

from typing import Literal, TypedDict, Unpack

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.errors import ConfigError, DataError
from nmt.model.transformer import Transformer
from nmt.recipe.config import (
    Activation,
    DecodingConfig,
    Embeddings,
    ModelConfig,
    Network,
    Norm,
    NormKind,
    Positions,
    Sampling,
    StartEmbedding,
)
from nmt.recipe.config_file import replace_settings
from nmt.search.decoding import EncodedSource
from nmt.search.sampling import draw_tokens, most_probable, single_hypotheses

_MAX_LENGTH = 1_000_000  # tokens; no sentence is longer, and the memory would not suffice
UNCONSTRAINED = DecodingConfig(length_normalization="none")
"""generated text has no minimum length, no penalty and no forbidden n-grams"""


class Sizes(TypedDict, total=False):
    """Keywords for the sizes of a model; the defaults are the paper's (see `ModelConfig`)."""

    d_model: int
    heads: int
    d_ff: int
    encoder_layers: int
    decoder_layers: int
    decoder: Literal["attention", "ssru"]
    activation: Activation
    feed_forward: Network
    norm: Norm
    norm_kind: NormKind
    dropout: float
    attention_dropout: float
    activation_dropout: float
    embeddings: Embeddings
    output_bias: bool
    positions: Positions
    start_embedding: StartEmbedding
    source_eos: bool
    layer_norm_epsilon: float
    initialization_gain: float


class GeneratingTransformer(Transformer):
    """The model of Figure 1 of the paper, built from sizes, which also generates translations.

    >>> model = Transformer(8000, d_model=128, heads=4, d_ff=256, encoder_layers=2)
    >>> logits = model(source, target)  # (B, S), (B, T) -> (B, T, V)
    >>> ids = model.generate(source, max_length=50, temperature=0.7)  # (B, S) -> (B, T)

    Without `target_vocabulary_size`, both languages have one vocabulary, and all embeddings share a
    matrix (section 3.4). With it, target embedding and output projection share one. `embeddings`
    changes that. The source id `padding` is not attended to; `bos` and `eos` enclose a target.
    Shapes: B sentences, S source and T target tokens, V target vocabulary, D `d_model`.

    Raises:
        ConfigError: an impossible size or id, or an unknown keyword.
    """

    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        *,
        padding: int = PAD,
        bos: int = BOS,
        eos: int = EOS,
        **sizes: Unpack[Sizes],
    ) -> None:
        tied = "shared" if target_vocabulary_size is None else "target"
        config = replace_settings(ModelConfig(), {"embeddings": tied, **sizes}, "Transformer")
        if target_vocabulary_size is None:
            target_vocabulary_size = source_vocabulary_size
        vocabularies = {"source": source_vocabulary_size, "target": target_vocabulary_size}
        ids = {"padding": padding, "bos": bos, "eos": eos}
        _check_vocabularies(vocabularies, config.embeddings, ids)
        sizes_of_sides = source_vocabulary_size, target_vocabulary_size
        super().__init__(config, *sizes_of_sides, padding, bos, eos)
        self.bos, self.eos = bos, eos
        self.register_load_state_dict_pre_hook(_without_network)  # type: ignore[no-untyped-call]

    def generate(
        self,
        source: Tensor,
        max_length: int = 50,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 1,
    ) -> Tensor:
        """Source ids (B, S) -> translations (B, T) without BOS and EOS, padded at the end.

        Temperature 0 takes the most probable token at every step. Any other temperature divides
        the logits before a token is drawn: among the `top_k` most probable ones, or among the most
        probable ones that reach the sum `top_p`. What is drawn for a row depends only on `seed` and
        the row's index. A translation has at most `max_length` tokens, EOS included. Dropout is
        off during the call.

        Raises:
            ConfigError: an impossible `max_length`, `temperature`, `top_k`, `top_p` or `seed`.
            DataError: `source` is not a batch of source ids, or has a row of padding only.
            CheckpointError: the model's scores are NaN or infinite.
        """
        if not _is_integer(max_length, least=1) or max_length > _MAX_LENGTH:
            raise ConfigError(
                f"generate: max_length is {max_length!r}, expected a whole number from 1 to "
                f"{_MAX_LENGTH:,}"
            )
        sampling = _sampling(temperature, top_k, top_p, seed)
        self._check_source(source)
        row_seeds = [(row,) for row in range(len(source))]  # `draw_tokens` adds them to `seed`
        choose = draw_tokens(sampling, row_seeds) if sampling else most_probable
        limits = source.new_full((len(source),), max_length)
        in_training = [module for module in self.modules() if module.training]
        self.eval()
        try:
            with torch.inference_mode():
                memory = self.encode(source)
            encoded = EncodedSource(source, memory, limits, self.bos, self.eos)
            hypotheses = single_hypotheses(self, encoded, UNCONSTRAINED, choose)
        finally:
            for module in in_training:
                module.training = True
        if not hypotheses:  # `source` has no row
            return source.new_empty(0, 0)
        ids = [torch.tensor(hypothesis.tokens, dtype=source.dtype) for hypothesis in hypotheses]
        return pad_sequence(ids, batch_first=True, padding_value=self.padding).to(source.device)

    def _check_source(self, source: Tensor) -> None:
        """Check that `source` is ids (B, S) of this model, on its device, with a token in each row.

        Raises:
            DataError: `source` is something else; the message says what to give.
        """
        size, device = self.source_embedding.weight.shape[0], self.source_embedding.weight.device
        if not isinstance(source, Tensor):
            problem = (
                f"is of type {type(source).__name__}, expected a tensor of ids of shape (B, S), "
                "rows filled up with padding"
            )
        elif source.dim() != 2 or source.dtype != torch.int64:
            problem = (
                f"has the shape {tuple(source.shape)} and the type {source.dtype}, expected ids of "
                "shape (B, S) and type torch.int64; a single sentence is source[None]"
            )
        elif source.device != device:
            problem = f"is on {source.device} and the model on {device}; give source.to('{device}')"
        elif not bool((source != self.padding).any(1).all()):
            problem = "has a row without a token; give it EOS"
        elif (unknown := source[(source < 0) | (source >= size)]).numel():
            problem = (
                f"has the id {int(unknown[0])}, expected 0 to {size - 1}; "
                "encode it with the vocabulary of the model"
            )
        else:
            return
        raise DataError(f"generate: source {problem}")


def transformer_base(
    source_vocabulary_size: int, target_vocabulary_size: int | None = None, **sizes: Unpack[Sizes]
) -> GeneratingTransformer:
    """Build the paper's `base` (table 3): 63.1 M parameters with one vocabulary of 37,000.

    Raises:
        ConfigError: an impossible size, or an unknown keyword.
    """
    return GeneratingTransformer(source_vocabulary_size, target_vocabulary_size, **sizes)


def transformer_big(
    source_vocabulary_size: int, target_vocabulary_size: int | None = None, **sizes: Unpack[Sizes]
) -> GeneratingTransformer:
    """Build the paper's `big` (table 3): 214.2 M parameters with one vocabulary of 37,000.

    `dropout` is 0.3; the paper's English-French model has 0.1 (section 6.1).

    Raises:
        ConfigError: an impossible size, or an unknown keyword.
    """
    big: Sizes = {"d_model": 1024, "heads": 16, "d_ff": 4096, "dropout": 0.3}
    big.update(sizes)  # what the caller gives replaces the paper's sizes
    return GeneratingTransformer(source_vocabulary_size, target_vocabulary_size, **big)


def _without_network(
    _model: nn.Module, weights: dict[str, Tensor], prefix: str, *_: object
) -> None:
    """Rename weights that were saved while this class kept its model as `network`."""
    old = f"{prefix}network."
    for name in [name for name in weights if name.startswith(old)]:
        weights[prefix + name.removeprefix(old)] = weights.pop(name)


def _check_vocabularies(sizes: dict[str, int], embeddings: str, ids: dict[str, int]) -> None:
    """Check the sizes of the vocabularies of source and target, and the special ids.

    `ids` are those of padding, bos and eos, by these names and in this order.

    Raises:
        ConfigError: a size or an id is impossible, or two ids are equal.
    """
    for side, size in sizes.items():
        if not _is_integer(size, least=1):
            raise ConfigError(
                f"Transformer: {side}_vocabulary_size is {size!r}, expected a whole number above 0"
            )
    if embeddings == "shared" and sizes["source"] != sizes["target"]:
        raise ConfigError(
            f"Transformer: embeddings='shared' needs one vocabulary, got {sizes['source']:,} "
            f"source and {sizes['target']:,} target entries; write embeddings='target'"
        )
    for name, number in ids.items():
        size = min(sizes.values()) if name == "padding" else sizes["target"]
        if not _is_integer(number, least=0) or number >= size:
            raise ConfigError(
                f"Transformer: {name} is {number}, which is no entry of a vocabulary of {size:,}"
            )
    if len(set(ids.values())) < len(ids):
        padding, bos, eos = ids.values()
        raise ConfigError(
            f"Transformer: padding, bos and eos must differ, got {padding}, {bos} and {eos}"
        )


def _sampling(
    temperature: float, top_k: int | None, top_p: float | None, seed: int
) -> Sampling | None:
    """Return how tokens are drawn; None for temperature 0, which takes the most probable ones."""
    changes: dict[str, object] = {"top_k": top_k, "top_p": top_p, "seed": seed}
    if temperature != 0:
        changes["temperature"] = temperature
    elif not (top_k is None and top_p is None):
        raise ConfigError("generate: temperature is 0, expected above 0 with top_k or top_p")
    sampling = replace_settings(Sampling(), changes, "generate")
    return sampling if temperature else None


def _is_integer(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
