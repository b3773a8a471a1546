"""A trained model made faster for inference: code in C, prepacked matrices and CUDA graphs."""
