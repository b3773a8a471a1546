"""Search: from source ids and a model to the target ids of its best translations."""
