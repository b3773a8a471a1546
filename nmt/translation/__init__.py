"""Translation of text: lines in, translated lines out, with scores and alignments."""
