"""The table of operations and their samples."""

from .factors import FACTORS
from .fourier import FOURIER
from .indexing import INDEXING
from .linalg import LINALG
from .networks import NETWORKS
from .pointwise import POINTWISE
from .products import PRODUCTS
from .reductions import REDUCTIONS
from .shapes import ARRANGING, COPIES, JOINING, VIEWS
from .sorting import SORTING
from .spatial import SPATIAL
from .special import SPECIAL
from .structural import STRUCTURAL
from .table import DType, Fixed, Make, Operation, Sample

OPERATIONS: list[Operation] = [
    *POINTWISE, *REDUCTIONS, *SORTING, *VIEWS, *COPIES, *JOINING, *ARRANGING, *PRODUCTS, *INDEXING,
    *NETWORKS, *LINALG, *SPECIAL, *STRUCTURAL, *FOURIER, *FACTORS, *SPATIAL,
]  # fmt: skip
BY_NAME = {operation.name: operation for operation in OPERATIONS}
