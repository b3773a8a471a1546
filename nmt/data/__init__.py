"""Parallel text, from files to the batches that a model reads.

A pair of lines passes through these files in this order, and never goes back:

1. `corpora/registry.py` finds the files of the configured corpus, or downloads them.
2. `text/parallel_text.py` reads them in blocks of lines (`Block`, bytes), source beside target.
3. `tokens/encoding.py` decodes a block to text (`SentencePair`) and runs the next two steps on it.
4. `text/cleaning.py` says which pairs to leave out, and why.
5. `tokens/bulk_encoding.py` turns the text of the others into ids.
6. `tokens/token_store.py` writes the ids to disk and maps them into memory (`TokenStore`).
7. `tokens/batches.py` orders the pairs of an epoch and cuts them into training steps.
8. `tokens/batch.py` pads the pairs of a step to tensors (`Batch`).

`prepared.py` runs steps 1 to 6 once for a corpus; training takes steps 7 and 8 for each update.
"""
