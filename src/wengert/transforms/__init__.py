"""Tensors inside grad, jvp, vmap and a trace."""
