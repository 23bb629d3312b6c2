"""Custom operators: schemas, definitions, kernels and gradient formulas."""
