"""All elementwise operators in one place, for the rules and composites of other modules."""

from ..backends.loop_codes import ADD as ADD
from .arithmetic import *  # noqa: F403
from .arithmetic import div_ as div_
from .arithmetic import real_part as real_part
from .comparison import *  # noqa: F403
from .copying import new_zeros as new_zeros
from .copying import zeros_like as zeros_like
from .logic import *  # noqa: F403
from .selection import *  # noqa: F403
from .selection import abs_ as abs_
from .transcendental import *  # noqa: F403
from .transcendental import error_function as error_function
from .transcendental import logistic as logistic
