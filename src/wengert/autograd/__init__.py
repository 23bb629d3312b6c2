"""The differentiation system."""
