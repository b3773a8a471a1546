"""How good translations are: metrics, test sets, comparison of systems, significance."""
