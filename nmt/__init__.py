"""nmt: Transformer translation models, from raw parallel text to a score one can defend."""

__version__ = "0.1.0"
