"""Graphs as data: nodes, values, types, text."""
