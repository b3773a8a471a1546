"""The Transformer of eole, which came from OpenNMT, of the sizes of one of our models."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from nmt.data.tokens.batch import Batch
from nmt.data.tokens.tokenizer import PAD
from nmt.recipe.config import ModelConfig


def eole_model(
    sizes: ModelConfig, vocabulary_size: int
) -> tuple[nn.Module, Callable[[Batch], Tensor]]:
    """The model with random weights, and its logits (B, T, V) of a batch.

    Its norms stand before the sublayers, and its linear maps have no biases: it has no others.
    """
    from eole.config.models import TransformerModelConfig
    from eole.config.training import TrainingConfig
    from eole.models.model import EncoderDecoderModel

    config = TransformerModelConfig(
        architecture="transformer",
        hidden_size=sizes.d_model,
        heads=sizes.heads,
        transformer_ff=sizes.d_ff,
        encoder={"encoder_type": "transformer", "layers": sizes.encoder_layers},
        decoder={"decoder_type": "transformer", "layers": sizes.decoder_layers},
        share_embeddings=True,
        share_decoder_embeddings=True,
        embeddings={
            "word_vec_size": sizes.d_model,
            "position_encoding_type": "SinusoidalInterleaved",
        },
    )
    pieces = {f"piece{i}": i for i in range(vocabulary_size)}
    vocabularies = {"specials": {"pad_token": f"piece{PAD}"}, "src": pieces, "tgt": pieces}
    training = TrainingConfig(
        dropout=[sizes.dropout],
        attention_dropout=[0.0],
        param_init_method="xavier_uniform",
    )
    model: Any = EncoderDecoderModel.build(config, vocabularies, training)
    model.init_weights(training)

    def logits(batch: Batch) -> Tensor:
        # it reads no lengths, and drops the last token of the target
        target = nn.functional.pad(batch.target_input, (0, 1), value=PAD)
        found: Tensor = model.generator(model(batch.source, target, None).dec_out)
        return found

    return model, logits
