"""Parallel text, from files to the batches that a model reads.

A pair of lines passes through these files in this order:

1. `corpora/registry.py` finds the files of the configured corpus, or downloads them.
2. `text/parallel_text.py` reads them in blocks of lines (`Block`, bytes), source beside target.
3. `tokens/encoding.py` runs steps 4 to 6 on a block (`BlockCleaner`).
4. `text/cleaning.py` decodes it to text (`SentencePair`), and says by its text whether to leave a
   pair out, and why (`Cleaner`).
5. `tokens/word_encoder.py` turns the text of the pairs that stay into ids (`bulk_encoder`).
6. `text/cleaning.py` says by the number of its ids whether to leave a pair out, and finds
   duplicates.
7. `tokens/token_store.py` writes the ids to disk and maps them into memory (`TokenStore`).
8. `tokens/batches.py` orders the pairs of an epoch, cuts them into training steps, and a step into
   micro-batches.
9. `tokens/batch.py` pads the pairs of a micro-batch to tensors (`Batch`).

`prepared.py` runs steps 1 to 7 once for a corpus; training takes steps 8 and 9 for each update.
"""
