"""Runs to be served: untrained models with weights of a seed, in complete run directories."""

from collections.abc import Sequence
from pathlib import Path

import torch

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.annotation import TERM_MARKS
from nmt.data.tokens.context import CONTEXT
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.files import write_json
from nmt.recipe.config import (
    Config,
    ContextConfig,
    DataConfig,
    DecodingConfig,
    ModelConfig,
    TermsConfig,
    TokenizerConfig,
)
from nmt.run.checkpoint import save_checkpoint, weights_of
from nmt.run.directory import RunDirectory
from nmt.run.model import build_model

PAIRS = [SentencePair("a small dog 123 .", "ein kleiner Hund !")]


def write_run(
    path: Path,
    source: str,
    target: str,
    seed: int = 1,
    tags: Sequence[str] = (),
    context: ContextConfig | None = None,
    terms: TermsConfig | None = None,
) -> Path:
    """Write a run that the C library can serve; its vocabulary has characters and bytes."""
    config = Config(
        data=DataConfig(
            source_language=source, target_language=target, context=context, terms=terms
        ),
        tokenizer=TokenizerConfig(kind="char", vocabulary_size=285, byte_fallback=True),
        model=ModelConfig(
            d_model=64, heads=4, d_ff=64, encoder_layers=1, decoder_layers=1, embeddings="separate"
        ),
        decoding=DecodingConfig(beam_size=3, max_length_offset=3),
    )
    run = RunDirectory(path)
    run.checkpoints.mkdir(parents=True)
    run.write_config(config)
    symbols = [*([CONTEXT] if context else []), *(TERM_MARKS if terms else ())]
    learn_vocabulary(PAIRS, config.tokenizer, tags, symbols).save(run.tokenizer)
    write_weights(path, seed)
    return path


def write_weights(path: Path, seed: int) -> None:
    """Write the checkpoint of step `seed`, with weights of this seed, as the best of a run."""
    from nmt.data.tokens.tokenizer import Tokenizer
    from nmt.recipe.config_file import load_config

    run = RunDirectory(path)
    torch.manual_seed(seed)
    model = build_model(load_config(str(run.config)), Tokenizer.load(run.tokenizer))
    torch.nn.init.normal_(model.output_embedding.weight)  # so that translations differ and end
    folder = run.checkpoint(seed)
    save_checkpoint(folder, weights_of(model))
    write_json(run.best, {"weights": str(folder.relative_to(path))})
