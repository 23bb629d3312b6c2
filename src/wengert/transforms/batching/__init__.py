"""Batching: what an operator does to tensors that have a batch dimension out of its sight.

A batch rule is ``rule(operator, args, dims) -> (result, dim)``. `args` are the operator's arguments
in schema order with physical tensors; `dims` holds, for each argument, the position of the batch
dimension or None (a list of those for a list of tensors). The result is physical too; `dim` says
where its batch dimension is (None: it has none), one for all results or one each.

Rules are written in operators, so that they are differentiated and batched again by the levels
below. `rules.py` has those that many operators share, the other modules those of one kind of
operators.
"""

from .moving import batch_size as batch_size
from .writing import write_batched as write_batched
