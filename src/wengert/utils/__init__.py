"""Helpers that are not part of the differentiation system itself."""
