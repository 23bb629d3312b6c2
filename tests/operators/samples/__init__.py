"""The table of operations and their samples."""

from .pointwise import POINTWISE
from .table import DType, Fixed, Operation, Sample

OPERATIONS: list[Operation] = [*POINTWISE]
BY_NAME = {operation.name: operation for operation in OPERATIONS}
