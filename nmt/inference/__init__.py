"""A trained model made faster for inference: packed matrices, int8, and recorded steps."""
