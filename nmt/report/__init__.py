"""The report of a run: its measurements, read from its files and drawn as one HTML page."""
