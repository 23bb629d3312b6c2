"""Transformations of graphs. Each changes the graph it is given, and returns it."""

from .canonicalize import canonicalize as canonicalize
from .constants import fold_constants as fold_constants
from .constants import pool_constants as pool_constants
from .cse import eliminate_common_subexpressions as eliminate_common_subexpressions
from .dce import eliminate_dead_code as eliminate_dead_code
from .inline import inline as inline
from .memory import MemoryReport as MemoryReport
from .memory import liveness as liveness
from .peephole import peephole as peephole
from .profile import insert_profiles as insert_profiles
from .profile import remove_profiles as remove_profiles
from .rematerialize import Policy as Policy
from .rematerialize import rematerialize as rematerialize
from .requires_grad import clear_requires_grad as clear_requires_grad
from .requires_grad import propagate_requires_grad as propagate_requires_grad
from .reroll import reroll as reroll
from .shapes import propagate_shapes as propagate_shapes
from .tuples import lower_tuples as lower_tuples
from .tuples import pack_outputs as pack_outputs
from .zeros import specialize_zeros as specialize_zeros
