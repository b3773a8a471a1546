"""Lines in and lines out: streams, formats, and outputs that can be resumed."""
