"""A training step and a step of a search on a device that PyTorch does not know; see the test.

The device is an unused backend under the name "pretend", and all tensors are fake: they have a
device, a type and a shape, but no numbers. So an operation between two devices is an error, and
so is every place where Python waits for a number.
"""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from nmt.config import (
    Config,
    DataConfig,
    DecodingConfig,
    ModelConfig,
    TextPair,
    TokenizerConfig,
    TrainingConfig,
)
from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.model.transformer import Transformer
from nmt.run_directory import LoadedModel
from nmt.search.beam_search import _best_continuations
from nmt.search.decoding import Decoding, EncodedSource
from nmt.training.divergence import PendingCheck
from nmt.training.trainer import Trainer

VOCABULARY = 90
TEXT = TextPair(source="a", target="b")
SOURCES, TARGETS = [[5, 6, EOS], [7, EOS]] * 8, [[8, 9, EOS], [9, EOS]] * 8


def config(**training: Any) -> Config:
    sizes = {"d_model": 64, "heads": 4, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1}
    return Config(
        data=DataConfig(train=[TEXT], validation=[TEXT], directory="data"),
        tokenizer=TokenizerConfig(vocabulary_size=VOCABULARY),
        model=ModelConfig.model_validate(sizes),
        training=TrainingConfig(batch_tokens=100, micro_batch_tokens=64, **training),
    )


def model_on_device(sizes: ModelConfig) -> Transformer:
    with torch.device("pretend"):
        return Transformer(sizes, VOCABULARY, VOCABULARY)


def train(recipe: Config) -> None:
    tokenizer: Any = None
    run = LoadedModel(recipe, tokenizer, model_on_device(recipe.model).train(), Path("run"))
    store = TokenStore.of(SOURCES, TARGETS)
    stepper = Trainer(run, store, None, "fp32").stepper  # type: ignore[arg-type]
    # The numbers of a step are read when the next one has been launched: the only wait there is.
    with patch.object(PendingCheck, "read", return_value=(1.0, None)) as read:
        for _ in range(3):
            assert stepper.take().loss.device.type == "pretend"
    assert read.call_count == 2
    assert {weight.device.type for weight in run.model.parameters()} == {"pretend"}


@torch.inference_mode()
def search(sizes: ModelConfig) -> None:
    model, settings = model_on_device(sizes).eval(), DecodingConfig()
    source = collate_source(SOURCES[:2]).to("pretend")
    decoding = Decoding(model, EncodedSource.of(model, source, settings), settings)
    for count in (1, settings.beam_size):
        latest = source.new_full((2, count), BOS)
        log_p = decoding.next_log_p(latest, latest[..., None])
        scores = log_p.new_zeros((2, count))
        best = _best_continuations(log_p, scores, settings.beam_size)
        decoding.cache.continue_hypotheses(best.parents[:, : settings.beam_size])
        assert best.tokens.device.type == "pretend"


if __name__ == "__main__":
    _setup_privateuseone_for_python_backend("pretend")
    with FakeTensorMode(allow_non_fake_inputs=True):
        train(config())
        train(config(optimizer="muon", moving_average=0.99))
        search(config().model)
