"""Models of other programs, in and out: each file is one format."""
