"""Gradients of graphs."""
