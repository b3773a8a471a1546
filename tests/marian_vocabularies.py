"""Vocabularies with the special symbols of Marian."""

import io

import sentencepiece


def learn(kind: str, lines: list[str], size: int, character_coverage: float = 0.9995) -> bytes:
    """Learn a SentencePiece model as Marian does: EOS is 0, UNK is 1."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        model_type=kind,
        character_coverage=character_coverage,
        hard_vocab_limit=False,
        eos_id=0,
        unk_id=1,
        bos_id=-1,
        pad_id=-1,
        minloglevel=2,
    )
    return model.getvalue()
