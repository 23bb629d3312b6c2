"""The streams of random numbers, under PyTorch's module name."""

from .creation.generator import default_generator as default_generator
from .creation.generator import fork_rng as fork_rng
from .creation.generator import get_rng_state as get_rng_state
from .creation.generator import initial_seed as initial_seed
from .creation.generator import manual_seed as manual_seed
from .creation.generator import seed as seed
from .creation.generator import set_rng_state as set_rng_state
