"""A trained model made faster for inference: prepacked matrices, int8, and CUDA graphs."""
