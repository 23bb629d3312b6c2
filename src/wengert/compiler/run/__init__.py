"""Running graphs, and compiled functions."""
