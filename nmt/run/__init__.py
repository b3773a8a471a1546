"""A run on disk: its directory, its checkpoints, and the model that they hold."""
