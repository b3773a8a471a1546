"""Translation on a CPU in C: the model and beam search without an operator's cost for each step."""
