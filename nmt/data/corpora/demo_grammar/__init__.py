"""The grammar and lexicon behind the demo corpus, from word forms up to sentences."""
