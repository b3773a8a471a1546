"""Estimates of the time and memory that a training needs, made before it starts."""
