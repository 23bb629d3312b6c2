"""The public face of Tensor: attributes, methods, printing, pickling, NumPy's protocols."""
