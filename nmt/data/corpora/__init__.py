"""Known corpora: where each one comes from, how it is downloaded, and how it is split."""
