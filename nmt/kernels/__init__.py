"""Operations of training in C, each of which does in one pass what PyTorch does in several."""
