"""Translation memories: pairs that were translated before, found again."""
