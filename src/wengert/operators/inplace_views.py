"""In-place forms of view operators: the tensor keeps its memory and gets another shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.geometry import overload_number, seen_from
from ..core.arrays import WrapperArray
from ..core.registry import register
from ..core.scopes import DualsAside
from ..core.state import ThreadState, thread_state
from ..core.tensor import Tensor, ViewMeta, any_requires, set_fields
from ..dispatch.base_operator import present
from ..dispatch.inplace import InplaceOperator
from ..dispatch.layers import call_outside, has_inner_tangents, innermost, run_below
from ..dispatch.operator import Operator
from ..dispatch.rebasing import check_inplace, move_retained_grad
from ..dispatch.recording import fill_saved, record
from ..dispatch.schema import Schema
from ..dispatch.schema_parser import parse
from ..dispatch.torch_dispatch import override_below
from ..dispatch.torch_function import marked
from ..tape.tangents import set_tangent, tangent_of
from . import strides, views

__all__ = ["as_strided_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_"]


class InplaceView(InplaceOperator):
    """Makes a tensor a view of itself; as every in-place change, that is recorded and counted."""

    def call(self, args: tuple) -> Tensor:
        state = thread_state()
        if not state.layers:
            return self._change(state, args)
        level = innermost(args)
        if state.levels and level is not state.levels[-1]:
            number = 0 if level is None else level.number
            if not has_inner_tangents(state, self.functional, args, number):
                return call_outside(state, self, args, number)
        tangent = tangent_of(args[0]) if state.dual_level >= 0 else None
        target = self._change(state, args)
        if tangent is not None:
            with DualsAside(state):
                set_tangent(target, self.functional.call((tangent, *args[1:])))
        return target

    def _change(self, state: ThreadState, args: tuple) -> Tensor:
        view = self.functional
        target: Any = args[0]
        recording = state.grad_enabled and any_requires(args, view.grad_positions)
        check_inplace(target, recording, state)
        node = None
        if recording:
            node = record(view, state, args, target.array)
            fill_saved(node, args, ())
        version, array = target.version(), target.array
        if innermost(args) is not None or override_below(state, self, args) is NotImplemented:
            set_fields(target, array=marked(type(target), run_below(state, view, args)))
        else:
            if target.counter is not None:
                target.counter.value = version  # what a handler has counted is one change
            if type(array) is WrapperArray and target.array is array:
                set_fields(target, array=view.kernel(np, array, *args[1:]))
        if node is not None:
            node.out_shape = target.array.shape
        target.bump(self.name)
        meta = target.view_meta
        if meta is not None:
            steps = (meta.steps, view, args[1:])
            meta = ViewMeta(meta.base, steps, meta.creation, target.version())
            set_fields(target, view_meta=meta)
        if node is None:
            set_fields(target, accumulator=None)
        else:
            move_retained_grad(target, node)
            set_fields(target, node=node, output_index=0)
        return target


class InplaceAsStrided(InplaceView):
    """as_strided_, whose operator wants places counted from the tensor's own first element."""

    def __call__(
        self, input: Tensor, size: Any, stride: Any, storage_offset: int | None = None
    ) -> Tensor:
        return self.call((input, *seen_from(input.array, size, stride, storage_offset)))


for _class in (InplaceView, InplaceAsStrided):
    present(_class)


def _inplace(
    view: Operator, schema: str, node_name: Any, kind: type[InplaceView] = InplaceView
) -> InplaceView:
    """The in-place form of `view`, whose nodes have a name of their own."""
    twin = Operator(view.name, view.schema, view.family, view.kernel)
    twin.rules = view.rules
    twin.grad_positions = view.grad_positions
    twin.is_view = True
    twin.batch = view.batch
    if isinstance(node_name, str):
        twin.node_name = node_name
    else:
        twin.namer = node_name
    parsed: Schema = parse(schema)
    inplace = kind(twin, parsed)
    inplace.name = parsed.name
    register(inplace)
    return inplace


transpose_ = _inplace(
    views.transpose,
    "transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)",
    "TransposeBackward1",
)
swapdims_ = _inplace(
    views.transpose,
    "swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)",
    "TransposeBackward1",
)
swapaxes_ = _inplace(
    views.transpose,
    "swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)",
    "TransposeBackward1",
)
t_ = _inplace(views.t, "t_(Tensor(a!) self) -> Tensor(a!)", "TBackward1")
unsqueeze_ = _inplace(
    views.unsqueeze, "unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", "UnsqueezeBackward1"
)
squeeze_ = _inplace(
    views.squeeze,
    "squeeze_(Tensor(a!) self, int[]? dim=None) -> Tensor(a!)",
    lambda self, dim: f"SqueezeBackward{3 + overload_number(dim)}",
)
as_strided_ = _inplace(
    strides.as_strided_relative,
    "as_strided_(Tensor(a!) self, int[] size, int[] stride, int? storage_offset=None) "
    "-> Tensor(a!)",
    "AsStridedBackward1",
    InplaceAsStrided,
)
