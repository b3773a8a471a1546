"""Hugging Face's MarianMTModel of the sizes of one of our models."""

from transformers import MarianConfig, MarianMTModel

from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.recipe.config import ModelConfig


def marian_model(sizes: ModelConfig, vocabulary_size: int) -> MarianMTModel:
    """The same architecture with weights of its own, drawn at random."""
    return MarianMTModel(
        MarianConfig(
            vocab_size=vocabulary_size,
            d_model=sizes.d_model,
            encoder_layers=sizes.encoder_layers,
            decoder_layers=sizes.decoder_layers,
            encoder_attention_heads=sizes.heads,
            decoder_attention_heads=sizes.heads,
            encoder_ffn_dim=sizes.d_ff,
            decoder_ffn_dim=sizes.d_ff,
            activation_function=sizes.activation,
            dropout=sizes.dropout,
            scale_embedding=True,
            max_position_embeddings=512,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
            forced_eos_token_id=None,
        )
    )
