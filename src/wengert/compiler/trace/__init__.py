"""From a running program to a graph."""
