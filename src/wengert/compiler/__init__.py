"""Programs as graphs: build, print and read them, run them, differentiate and transform them."""

from .autodiff import Gradient as Gradient
from .autodiff import NotDifferentiable as NotDifferentiable
from .autodiff import differentiate as differentiate
from .autodiff import is_differentiable as is_differentiable
from .autodiff import isDifferentiable as isDifferentiable
from .compile import Compiled as Compiled
from .compile import compile as compile
from .compile import explain as explain
from .executable import Executable as Executable
from .interpreter import Program as Program
from .interpreter import run as run
from .ir import Graph as Graph
from .nodes import HOLE as HOLE
from .nodes import Block as Block
from .nodes import GraphError as GraphError
from .nodes import Node as Node
from .nodes import Use as Use
from .nodes import Value as Value
from .parser import ParseError as ParseError
from .parser import parse as parse
from .parser import parse_type as parse_type
from .trace import Traced as Traced
from .trace import TraceError as TraceError
from .trace import trace as trace
from .types import TensorType as TensorType
from .types import Type as Type
