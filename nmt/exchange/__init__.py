"""Models of other programs, in and out: one file for each format."""
