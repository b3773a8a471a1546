"""The text of an HTML page for a translation, and the page around the translation."""
