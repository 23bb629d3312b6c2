"""Making tensors: factories, conversions and random numbers."""
