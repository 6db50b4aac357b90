"""Weights & Biases: whether an experiment wants it, the key, and what it knows of our runs."""
