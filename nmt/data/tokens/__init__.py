"""Ids: the tokenizer, encoding, the token store, and the batches that a model reads."""
