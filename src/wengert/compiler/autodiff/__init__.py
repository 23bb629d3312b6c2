"""Gradients of graphs."""

# Says how nodes with blocks are differentiated, see `gradients.register_gradient`.
from . import control as control
