"""Small models for tests, with the methods of a `Transformer` that a search calls."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import BOS, PAD, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.kernels.faster_modules import use_faster_modules
from nmt.model.attention import AttentionRecord
from nmt.model.transformer import Transformer
from nmt.recipe.config import Config, DecodingConfig, ModelConfig, TokenizerConfig
from nmt.run.model import LoadedModel, build_model
from nmt.training.loss import Objective
from nmt.training.prepare import PACKED

STATES = 9973


def packing_objective(model: Transformer) -> Objective:
    """The loss of a model that takes packed batches, as on a GPU."""
    objective = Objective(model, 0.1, "fp32")
    objective.storage = "packed"
    use_faster_modules(model, PACKED)
    return objective


@dataclass
class PrefixCache:
    """The source ids (N, S), and the tokens so far of each hypothesis (N, k, T)."""

    source: Tensor
    prefix: Tensor

    def continue_hypotheses(self, parents: Tensor) -> None:
        self.prefix = self.prefix.gather(
            1, parents[:, :, None].expand(-1, -1, self.prefix.shape[2])
        )

    def keep_sentences(self, sentences: Tensor) -> None:
        self.source, self.prefix = self.source[sentences], self.prefix[sentences]


class StandInModel(nn.Module):
    """A model whose `next_logits` depend only on the source ids and the tokens so far."""

    padding = PAD

    def encode(self, source: Tensor) -> Tensor:
        return source

    def start(self, memory: Tensor, source: Tensor) -> PrefixCache:
        return PrefixCache(source, source.new_empty((len(source), 1, 0)))

    def step(self, tokens: Tensor, cache: PrefixCache, attention: None = None) -> Tensor:
        cache.prefix = torch.cat((cache.prefix, tokens[:, :, None]), dim=2)
        return self.next_logits(cache)

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        """Return the logits of the last position only: (B, S), (B, T) -> (B, 1, V)."""
        return self.next_logits(PrefixCache(source, target_input[:, None]))

    def next_logits(self, cache: PrefixCache) -> Tensor:
        """Return the logits of the next token of each hypothesis: (N, k, V)."""
        raise NotImplementedError


class TableModel(StandInModel):
    """Draws the logits at random for each first source token and prefix; PAD and BOS are high."""

    def __init__(self, vocabulary_size: int, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.table = 2 * torch.randn(STATES, vocabulary_size, generator=generator)
        self.table[:, [PAD, BOS]] += 5

    def next_logits(self, cache: PrefixCache) -> Tensor:
        state = (cache.source[:, :1] * 7919).expand(cache.prefix.shape[:2])
        for position in range(cache.prefix.shape[2]):
            state = (state * 31 + cache.prefix[:, :, position] + 1) % STATES
        return self.table[state]


table_model: Any = TableModel
"""the class as Any, because the functions under test expect a Transformer"""


CHOICES: dict[str, list[Any]] = {
    name: [False, True] if field.annotation is bool else list(get_args(field.annotation))
    for name, field in ModelConfig.model_fields.items()
    if field.annotation is bool or isinstance(field.default, str)
}
"""the values of each setting that is one of several"""


def small_transformer(vocabulary_size: int, **settings: Any) -> Transformer:
    """Return a Transformer in evaluation mode with random weights; `settings` are of its config.

    Biases and gains are random too: neutral ones would hide mistakes.
    """
    torch.manual_seed(1)
    sizes = {"d_model": 16, "heads": 4, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 3}
    config = ModelConfig(**sizes | settings)
    model = Transformer(config, vocabulary_size, vocabulary_size, PAD).eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=float(name.endswith("norm.weight")), std=0.3)
    return model


class Copier(StandInModel):
    """Translates each sentence into itself, token for token; `batches` are the sizes it was given.

    A copy of the model is the model itself, so that its batches are seen as well.
    """

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__()
        self.certainty = nn.Parameter(50 * torch.eye(vocabulary_size))
        self.batches: list[tuple[int, int]] = []

    def encode(self, source: Tensor) -> Tensor:
        self.batches.append((source.shape[0], source.shape[1]))
        return source

    def next_logits(self, cache: PrefixCache) -> Tensor:
        position = min(cache.prefix.shape[2], cache.source.shape[1]) - 1
        return self.certainty[cache.source[:, position, None].expand(cache.prefix.shape[:2])]

    def forward(
        self, source: Tensor, target_input: Tensor, attention: AttentionRecord | None = None
    ) -> Tensor:
        """Return all logits (B, T, V) if attention is recorded: token t looks at place t."""
        if attention is None:
            return super().forward(source, target_input)
        length = target_input.shape[1]
        places = torch.arange(length).clamp(max=source.shape[1] - 1)
        weights = torch.eye(source.shape[1])[places]  # (T, S)
        attention.cross.append(weights.expand(len(source), 2, -1, -1))
        return self.certainty[source[:, places]]

    def __deepcopy__(self, memo: dict[int, object]) -> "Copier":
        return self


@pytest.fixture(scope="session")
def byte_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """A tokenizer of characters and bytes, which restores every text exactly."""
    config = TokenizerConfig(
        kind="char", vocabulary_size=280, byte_fallback=True, normalization="identity"
    )
    pairs = [SentencePair("ein kleiner Hund </s>", "a small dog 123 .")]
    return learn_vocabulary(pairs, config)


@pytest.fixture
def copying_run(byte_tokenizer: Tokenizer) -> LoadedModel:
    """A run that translates every text into itself."""
    model = Copier(byte_tokenizer.target.size)
    return LoadedModel(Config(), byte_tokenizer, model, Path("run"))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def random_run(byte_tokenizer: Tokenizer) -> LoadedModel:
    """A run of an untrained Transformer whose translations differ in length."""
    torch.manual_seed(1)
    sizes = ModelConfig(
        d_model=16, heads=2, d_ff=16, encoder_layers=1, decoder_layers=1, embeddings="separate"
    )
    config = Config(model=sizes, decoding=DecodingConfig(beam_size=3, max_length_offset=5))
    model = build_model(config, byte_tokenizer).eval()
    torch.nn.init.normal_(model.output_embedding.weight, std=1.0)
    return LoadedModel(config, byte_tokenizer, model, Path("run"))
