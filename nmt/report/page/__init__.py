"""The HTML page of a report: its elements, charts and tables."""
