"""The operator declarations, by family, and how they become functions and methods."""
