"""An operator that was defined at run time: its kernels, its formula, and one call of it.

Where the operators of the library have kernels on arrays, a custom one has kernels on tensors, one
per type of device. Operators made by `custom_op` and those with a registered formula get one node
per call; other operators are transparent, what their kernels call is recorded and a backward warns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.backend import has_elements
from ..backends.geometry import owner_of
from ..backends.placement import of_array
from ..core.scopes import DualsAside
from ..core.state import ThreadState, call_user, overriding, thread_state
from ..core.tensor import Tensor, any_requires, bump_version, requires_of
from ..dispatch.base_operator import BaseOperator
from ..dispatch.binding import OVERLOAD, bind_overload, convert_declared
from ..dispatch.declaration import any_foreign
from ..dispatch.layers import call_layers, innermost
from ..dispatch.rebasing import check_inplace
from ..dispatch.schema import REQUIRED, TENSORS
from ..dispatch.schema_parser import parse, parse_results
from ..dispatch.torch_dispatch import override_below, without_history
from .forward_mode import push_tangents, tangents_of
from .node import plan_for, record_call
from .overloads import overload_of
from .results import Results
from .schema import FunctionSchema
from .tags import Tag
from .transforms import call_below
from .unregistered import warn_in_backward

ANY_DEVICE = "any"
NO_DEVICE = ""


class CustomOperator(BaseOperator):
    """One overload of a custom operator."""

    family = "custom"
    broadcasts = False
    is_view = False
    nondifferentiable_outputs = ()
    batch = batch_rule = None
    batches_by_loop = False
    rules: dict[str, Any] = {}
    no_output = np.empty(())

    def __init__(self, schema: FunctionSchema, tags: tuple[Tag, ...] = ()) -> None:
        self._schema = schema
        self.tags = tags
        self.namespace, _, self.base_name = schema.name.partition("::")
        self.overload = schema.overload_name
        name = schema.name + (f".{self.overload}" if self.overload else "")
        super().__init__(name, parse(str(schema)))
        arguments, returns = self.schema.arguments, parse_results(self.schema)
        self.result_types = Results(self.schema)
        self.positional = self.schema.positional
        self.keyword_names = tuple(a.name for a in arguments if a.keyword_only)
        self.list_positions = tuple(i for i, a in enumerate(arguments) if a.code == TENSORS)
        self.grad_positions = tuple(
            i for i, a in enumerate(arguments) if a.base == "Tensor" and not a.keyword_only
        )
        self.may_lack_tensors = not any(
            a.type == "Tensor" and not a.keyword_only for a in arguments
        )
        self.mutated = tuple(i for i, a in enumerate(arguments) if a.is_written())
        self.has_lists = any(each.code == TENSORS for each in (*arguments, *returns))
        self.returned_lists = tuple(each.code == TENSORS for each in returns)
        self.returns_one_tensor = len(returns) == 1 and returns[0].type == "Tensor"
        self.kernels: dict[str, Callable] = {}
        self.composite: Callable | None = None
        self.autograd_kernel: Callable | None = None
        self.passes_autograd = False  # without a formula, and that is right
        self.stopped: Any = None
        self.records = False
        self.backward: Callable | None = None
        self.setup_context: Callable | None = None
        self.jvp: Callable | None = None
        self.vmap: Callable | None = None
        self.checks_aliases = False
        self.plan = plan_for(
            self,
            f"GeneratedBackwardFor_{self.namespace}_{self.base_name}_"
            f"{self.overload or 'default'}Backward",
        )

    # Facts about the schema --------------------------------------------------------------------

    def overload_text(self) -> str:
        """The overload as PyTorch prints it: ``namespace.name.overload``."""
        return f"{self.namespace}.{self.base_name}.{self.overload or 'default'}"

    def optional_list(self, index: int) -> bool:
        """Whether the elements of a list argument may be None."""
        return self.schema.arguments[index].type == "Tensor?[]"

    def has_default(self, index: int) -> bool:
        return self.schema.arguments[index].default is not REQUIRED

    def returns_list(self, index: int) -> bool:
        return self.returned_lists[index]

    def keywords_of(self, args: tuple) -> dict[str, Any]:
        """The keyword-only arguments by name."""
        return dict(zip(self.keyword_names, args[self.positional :], strict=True))

    @property
    def functional(self) -> Any:
        """The operator that computes what this one returns or writes."""
        return self

    # The call ----------------------------------------------------------------------------------

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        return bind_overload(self, args, kwargs)

    def seen_by_overrides(self) -> Any:
        return overload_of(self)

    def call1(self, x: Any) -> Any:
        return self(x)

    def call2(self, x: Any, y: Any) -> Any:
        return self(x, y)

    def call(self, args: tuple) -> Any:
        """All arguments, in schema order."""
        state = thread_state()
        if state.layers or any_foreign(args):
            return call_layers(state, self, args)
        return self._run(state, args, False)

    def call_converted(self, args: tuple) -> Any:
        """All arguments in schema order, of any types that the schema's can be made of."""
        return self.call(self.converted(args))

    def converted(self, args: tuple) -> tuple:
        """All arguments as their schema types."""
        arguments = self.schema.arguments
        return tuple(
            [
                convert_declared(self, arguments[i], i, value, OVERLOAD)
                for i, value in enumerate(args)
            ]
        )

    def call_recorded(self, state: ThreadState, args: tuple, below: Any) -> Any:
        """A call with something active below autograd or in forward mode."""
        return self._run(state, args, True)

    def call_below_autograd(self, args: tuple) -> Any:
        """A call that is not recorded, whatever its arguments require."""
        state = thread_state()
        enabled, state.grad_enabled = state.grad_enabled, False
        try:
            return self.call(args)
        finally:
            state.grad_enabled = enabled

    def _run(self, state: ThreadState, args: tuple, layered: bool) -> Any:
        if self.autograd_kernel is not None and state.recording():
            return self.result_types.convert(self.apply(self.autograd_kernel, args))
        if self.composite is not None and not self._has_kernel(args, layered):
            return self.result_types.convert(self.apply(self.composite, args))
        recording = state.recording() and any_requires(args, self.grad_positions)
        if not self.records:
            return self._run_transparent(state, args, layered, recording)
        if self.mutated:
            self._check_mutation(state, args)
        tangents = None
        if (
            layered
            and state.dual_level >= 0
            and state.forward_grad_enabled
            and not state.tangents_aside
        ):
            tangents = tangents_of(self, args)
        if tangents is not None:
            with DualsAside(state):
                out = self._compute(state, args, True)
        else:
            out = self._compute(state, args, layered)
        self._count_changes(args)
        node = record_call(self, state, args, out) if recording else None
        if tangents is not None:
            with DualsAside(state):
                push_tangents(self, state, args, out, tangents, node)
        if node is not None:
            node.saved_for_forward = None
        return out

    def _run_transparent(
        self, state: ThreadState, args: tuple, layered: bool, recording: bool
    ) -> Any:
        """Without a formula, the operators inside the kernel are what is recorded."""
        before = [(t, t.version()) for t in self.mutated_tensors(args)] if self.mutated else ()
        out = self._compute(state, args, layered)
        if recording:
            if not self.passes_autograd:
                results = _flat_tensors(out if isinstance(out, tuple) else (out,))
                warn_in_backward(self, state, args, results, _flat_tensors(args))
        else:
            for t, version in before:
                if t.version() == version:
                    bump_version(t, self.name)
        return out

    def _compute(self, state: ThreadState, args: tuple, layered: bool) -> Any:
        """The results, by the layers below autograd or by a kernel."""
        if layered:
            level = innermost(args)
            if level is not None:
                return call_below(self, args, level)
            counters = [(t.shared_counter(), t.version()) for t in self.mutated_tensors(args)]
            out = override_below(state, self, args)
            if out is not NotImplemented:
                for counter, version in counters:
                    counter.value = version  # what the handler has counted is one change
                out = self.result_types.convert(out)
                recorded = self.records and state.recording()
                return without_history(args, out) if recorded else out
        device_type = self._device_type(args) if layered or self.may_lack_tensors else "cpu"
        if not self.records:
            return self.run_kernel(args, device_type)
        enabled, state.grad_enabled = state.grad_enabled, False
        try:
            return self.run_kernel(args, device_type)
        finally:
            state.grad_enabled = enabled

    def _has_kernel(self, args: tuple, layered: bool) -> bool:
        """Whether there is a kernel for the device, which goes before a composite one."""
        device_type = self._device_type(args) if layered or self.may_lack_tensors else "cpu"
        return device_type in self.kernels or ANY_DEVICE in self.kernels

    def run_kernel(self, args: tuple, device_type: str) -> Any:
        """The kernel for a device, with its results checked."""
        kernel = self.kernels.get(device_type) or self.kernels.get(ANY_DEVICE)
        if kernel is None:
            raise self._no_kernel(device_type)
        out = self.result_types.convert(self.apply(kernel, args))
        if self.checks_aliases:
            self._check_aliases(args, out)
        return out

    def apply(self, function: Callable, args: tuple) -> Any:
        """Call a function of the operator's arguments."""
        if overriding.possible:
            return call_user(
                function, *args[: self.positional], **self.keywords_of(args)
            )
        if not self.keyword_names:
            return function(*args)
        return function(*args[: self.positional], **self.keywords_of(args))

    def _device_type(self, args: tuple) -> str:
        """The device type of the tensors; of a Device argument, if there is no tensor.

        Without either it is NO_DEVICE, and only a kernel for all devices can be called.
        """
        found = None
        for position in self.grad_positions:
            value = args[position]
            for item in value if type(value) is list else (value,):
                if isinstance(item, Tensor):
                    found = of_array(item.array).type
                    if found != "cpu":
                        return found
        if found is None:
            for argument, value in zip(self.schema.arguments, args, strict=True):
                if argument.base == "Device" and value is not None:
                    return value.type
        return found or NO_DEVICE

    def _no_kernel(self, device_type: str) -> NotImplementedError:
        known = ", ".join(sorted(self.kernels)) or "none"
        if device_type == NO_DEVICE:
            return NotImplementedError(
                "There were no tensor arguments to this function (e.g., you passed an empty list "
                f"of Tensors), but no fallback function is registered for schema {self.name}: "
                f"nothing tells the device, and kernels exist for {known} only. Give the operator "
                "a kernel for all devices, CompositeExplicitAutograd"
            )
        return NotImplementedError(
            f"Could not run '{self.name}' with arguments from the '{device_type.upper()}' backend: "
            f"no kernel is registered for it. Kernels exist for: {known}"
        )

    # Mutation and aliases ----------------------------------------------------------------------

    def mutated_tensors(self, args: tuple) -> list[Tensor]:
        """The tensors among the arguments that the operator writes to."""
        found = []
        for position in self.mutated:
            value = args[position]
            found.extend(
                [v for v in (value if type(value) is list else (value,)) if v is not None]
            )
        return found

    def _check_mutation(self, state: ThreadState, args: tuple) -> None:
        """Refuse to change what autograd cannot follow: there is no formula for mutation."""
        recording = state.recording()
        for t in self.mutated_tensors(args):
            check_inplace(t, recording, state)
            if recording and requires_of(t):
                raise RuntimeError(
                    f"{self.name} changes an argument that requires grad, and an operator that "
                    "mutates has no derivative: the graph would keep the formula of the old value. "
                    "Call it under no_grad(), on a detach()ed tensor, or write a functional "
                    "operator"
                )

    def _count_changes(self, args: tuple) -> None:
        if self.mutated:
            for t in self.mutated_tensors(args):
                bump_version(t, self.name)

    def _check_aliases(self, args: tuple, out: Any) -> None:
        """Refuse results that share memory with an argument or with each other."""
        seen = [memory_owner(t) for t in _flat_tensors(args)]
        for t in _flat_tensors(out if isinstance(out, tuple) else (out,)):
            owner = memory_owner(t)
            if owner is None:
                continue
            for other in seen:
                if other is owner:
                    raise RuntimeError(
                        f"{self.name}: The output of this custom operator (1) must not also be an "
                        "input to this custom operator and (2) may not alias any inputs to this "
                        "custom operator or other returns. Return a clone() of what shares memory, "
                        "or do not return it"
                    )
            seen.append(owner)

    def __repr__(self) -> str:
        return f"<operator {self._schema}>"


def _flat_tensors(values: tuple) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif type(value) is list:
            found.extend([item for item in value if isinstance(item, Tensor)])
    return found


def memory_owner(t: Tensor) -> Any:
    """The object that owns the memory of a tensor; None for arrays that have none."""
    array = t.array
    if type(array) is not np.ndarray:
        return owner_of(array) if has_elements(array) else None
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array
