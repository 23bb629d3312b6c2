"""Programs as graphs: build, print and read them, run them, differentiate and transform them."""

from typing import Any as _Any

from ..core.missing import missing as _missing
from .autodiff.differentiate import Gradient as Gradient
from .autodiff.differentiate import NotDifferentiable as NotDifferentiable
from .autodiff.differentiate import differentiate as differentiate
from .autodiff.differentiate import is_differentiable as is_differentiable
from .autodiff.differentiate import isDifferentiable as isDifferentiable
from .autodiff.differentiate import joint_graph as joint_graph
from .interpret.control_flow import cond as cond
from .interpret.control_flow import map as map
from .interpret.control_flow import scan as scan
from .interpret.control_flow import while_loop as while_loop
from .interpret.program import Program as Program
from .ir.base import GraphError as GraphError
from .ir.blocks import Block as Block
from .ir.graph import Graph as Graph
from .ir.literals import HOLE as HOLE
from .ir.nodes import Node as Node
from .ir.nodes import Use as Use
from .ir.nodes import Value as Value
from .ir.parser import ParseError as ParseError
from .ir.parser import parse as parse
from .ir.parser import parse_type as parse_type
from .ir.types import TensorType as TensorType
from .ir.types import Type as Type
from .run.compile import Compiled as Compiled
from .run.compile import compile as compile
from .run.compile import explain as explain
from .run.executable import Executable as Executable
from .run.steering import allow_in_graph as allow_in_graph
from .run.steering import cudagraph_mark_step_begin as cudagraph_mark_step_begin
from .run.steering import disable as disable
from .run.steering import is_compiling as is_compiling
from .run.steering import is_dynamo_compiling as is_dynamo_compiling
from .run.steering import is_exporting as is_exporting
from .run.steering import list_backends as list_backends
from .run.subgraphs import slice_differentiable as slice_differentiable
from .run.tracing import trace as trace
from .trace.refusals import TraceError as TraceError
from .trace.traced import Traced as Traced

# Last, since importing the package `run` sets an attribute of the same name.
from .interpret.program import run as run  # isort: skip


def __getattr__(name: str) -> _Any:
    raise _missing(__name__, name)
