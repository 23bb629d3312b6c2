"""Mixed precision on the CPU: `autocast` chooses types of operators, `GradScaler` scales losses."""

from .autocast_mode import autocast as autocast
from .autocast_mode import custom_bwd as custom_bwd
from .autocast_mode import custom_fwd as custom_fwd
from .autocast_mode import get_autocast_dtype as get_autocast_dtype
from .autocast_mode import is_autocast_available as is_autocast_available
from .autocast_mode import is_autocast_enabled as is_autocast_enabled
from .grad_scaler import GradScaler as GradScaler
