"""Operations of training, in C or for a GPU in Triton, that take PyTorch several passes."""
