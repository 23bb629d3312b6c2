"""Graphs: types, values, nodes, blocks, their text, and how it is read and checked."""

# These say how graphs are printed and checked, see `base`.
from . import printer as printer
from . import verify as verify
