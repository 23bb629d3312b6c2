"""Custom operators: schemas, definitions, kernels and gradient formulas."""

from .signatures import infer_schema as infer_schema
