"""Text: reading pairs of lines, cleaning them, and rules about words and sentences."""
