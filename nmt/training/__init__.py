"""Training: batches, gradients, updates, validation and checkpoints of one run."""
