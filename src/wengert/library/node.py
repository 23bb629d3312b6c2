"""The node of a call of a custom operator, which is also the ``ctx`` of its formula."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd.function import FunctionCtx
from ..autograd.function_node import FunctionNode, among, save_tensors
from ..core.classes import COMPILED
from ..core.collector import collector
from ..core.ndarrays import ndarrays
from ..core.state import ThreadState, call_user, thread_state
from ..core.tensor import Tensor, requires_of, set_fields
from ..tape.node import edge_target, new_node
from ..tape.plans import GradientPlan, custom_plan

_collector = collector
_ndarrays = ndarrays
_no_output = np.empty(())


def _operator_of(node: Any) -> Any:
    """The operator that the class of a node was made for."""
    return node._operator


class OperatorNode(FunctionNode):
    """One recorded call. Each operator has a subclass of its own, with `_operator` set.

    `input_kinds` has an entry per positional argument: whether it is a tensor, or a tuple of that
    for the elements of a list. `result_kinds` has those of the results, None for a single tensor.
    """

    def __init__(self) -> None:
        FunctionNode.__init__(self)
        self.input_kinds: tuple = ()
        self.result_kinds: tuple | None = None

    # Backward ----------------------------------------------------------------------------------

    def run(self, grads: Any) -> list:
        backward = _operator_of(self).backward
        if backward is None:
            raise RuntimeError(
                f"Trying to backward through {_operator_of(self).overload_text()} but no autograd "
                "formula was registered. Use register_autograd to add one."
            )
        if self.result_kinds is not None:
            returned = backward(self, *self._nested_gradients(grads))
        else:
            if grads is None and not self.keeps_undefined:
                grads = self.zeros(0)
            returned = backward(self, grads)
        return self.gradients(returned)

    def _nested_gradients(self, grads: Any) -> list:
        """The gradients of the results, in the structure of the results."""
        flat: list = [None] * len(self.outputs_meta) if grads is None else grads
        if not self.keeps_undefined:
            flat = [self.zeros(i) if g is None else g for i, g in enumerate(flat)]
        found = iter(flat)
        return [
            [next(found) if is_tensor else None for is_tensor in result]
            if type(result) is tuple
            else (next(found) if result else None)
            for result in self.result_kinds  # type: ignore[union-attr]
        ]

    def gradients(self, returned: Any) -> list:
        """What the user's formula returned, checked, as one gradient per edge."""
        values = returned if isinstance(returned, tuple) else (returned,)
        inputs = self.input_kinds
        if len(values) != len(inputs):
            values = self._of_right_length(values)
        result: list = []
        for i in range(len(inputs)):
            kind, value = inputs[i], values[i]
            if kind is True:
                if value is not None and not isinstance(value, Tensor):
                    raise self._wrong_gradient(i, value)
                result.append(value)
            elif kind is False:
                if value is not None:
                    raise self._not_a_tensor(i)
            else:
                self._gradients_of_list(i, kind, value, result)
        return result

    def _gradients_of_list(self, index: int, kind: tuple, value: Any, result: list) -> None:
        if value is None and _operator_of(self).optional_list(index):
            value = [None] * len(kind)
        if type(value) is not list or len(value) != len(kind):
            raise self._wrong_structure(index, value)
        for i, is_tensor in enumerate(kind):
            item = value[i]
            if item is not None and not isinstance(item, Tensor):
                raise self._wrong_gradient(index, item)
            if is_tensor:
                result.append(item)
            elif item is not None:
                raise self._not_a_tensor(index)

    def _of_right_length(self, values: tuple) -> tuple:
        """The gradients without superfluous None, or with None for arguments left at defaults."""
        expected = len(self.input_kinds)
        lists = _operator_of(self).has_lists
        if len(values) > expected and not lists and all(v is None for v in values[expected:]):
            return values[:expected]
        missing = range(len(values), expected)
        if len(values) < expected and all(_operator_of(self).has_default(i) for i in missing):
            return values + tuple(
                [None] * len(kind) if type(kind) is tuple else None
                for kind in self.input_kinds[len(values) :]
            )
        if lists:
            raise self._wrong_structure(-1, values)
        raise RuntimeError(
            f"function {self.name()} returned an incorrect number of gradients (expected "
            f"{expected}, got {len(values)}): backward returns one for each positional argument of "
            "the operator, None for those that are no tensors"
        )

    def _wrong_structure(self, index: int, value: Any) -> RuntimeError:
        expected = [["*"] * len(k) if type(k) is tuple else "*" for k in self.input_kinds]
        if index < 0:
            got = [_starred(v) for v in value]
        else:
            got = list(expected)
            got[index] = _starred(value)
        return RuntimeError(
            f"Expected the return from backward to be of the same structure as the inputs. Got: "
            f"{_text(got)} (return from backward), {_text(expected)} (inputs of "
            f"{_operator_of(self).overload_text()})"
        )

    def _wrong_gradient(self, index: int, value: Any) -> RuntimeError:
        return RuntimeError(
            f"expected Variable or None (got {type(value).__name__}) as the gradient that "
            f"{self.name()} returned for argument {index + 1}"
        )

    def _not_a_tensor(self, index: int) -> RuntimeError:
        return RuntimeError(
            f"function {self.name()} returned a gradient different than None at position "
            f"{index + 1}, but the corresponding forward input was not a Variable: only tensors "
            "have gradients"
        )


def _starred(value: Any) -> Any:
    """A gradient's structure, with stars for what could be gradients."""
    if isinstance(value, (list, tuple)):
        items = [_starred(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return "*"


def _text(structure: list) -> str:
    return repr(tuple(structure)).replace("'", "")


def plan_for(operator: Any, name: str) -> GradientPlan:
    """What `new_node` makes the nodes of one operator from, of a class of their own."""
    attributes = {"_operator": operator, "__module__": __name__}
    node_class = type(name, (OperatorNode, FunctionCtx), attributes)
    return custom_plan(name, node_class)


# Recording ---------------------------------------------------------------------------------------


def record_call(operator: Any, state: ThreadState, args: tuple, out: Any) -> OperatorNode:
    """Make the results of a call those of a new node, and let `setup_context` fill it."""
    outs = [out] if operator.returns_one_tensor else _tensors_in(out)
    first = outs[0].array if outs and outs[0] is not None else _no_output
    node = new_operator_node(operator, state, args, first)
    if operator.setup_context is not None:
        set_up(operator, state, node, args, out)
    if not operator.returns_one_tensor:
        node.result_kinds = _structure(operator, out)
        node.outputs_meta = [(t.array.shape, t.array.dtype) for t in outs]
    constant = node.non_differentiable or ()
    for i, t in enumerate(outs):
        if t is not None and _ndarrays.is_differentiable(t.array) and not among(t, constant):
            set_fields(t, view_meta=None, node=node, output_index=i, needs_grad=True)
            if node.shown:
                _collector.show(t)
    if node.to_save is not None:
        save_tensors(node, state, tuple(outs))
    node.non_differentiable = None
    return node


def new_operator_node(
    operator: Any, state: ThreadState, args: tuple, out_array: Any
) -> OperatorNode:
    """A node with edges to what computed the tensors among the positional arguments."""
    needs: list = []
    inputs: list = []
    nodes: list = []
    nrs: list = []
    several = False
    for i in range(operator.positional):
        value = args[i]
        if isinstance(value, Tensor):
            inputs.append(True)
            needs.append(_add_edge(value, nodes, nrs))
            if nrs[-1]:
                several = True
        elif type(value) is list and i in operator.list_positions:
            flags, needed = _add_edges(value, nodes, nrs)
            inputs.append(flags)
            needs.append(needed)
            several = True
        else:
            inputs.append(False)
            needs.append(False)
    node: Any = new_node(
        operator.plan, state, out_array, tuple(nodes), tuple(nrs) if several else None
    )
    node.input_kinds = tuple(inputs)
    node.needs_input_grad = tuple(needs)
    return node


def _add_edge(t: Tensor, nodes: list, nrs: list) -> bool:
    if requires_of(t):
        nodes.append(edge_target(t))
        nrs.append(t.output_index)
        return True
    nodes.append(None)
    nrs.append(0)
    return False


def _add_edges(values: list, nodes: list, nrs: list) -> tuple[tuple, list]:
    """Edges for the tensors in a list: which items are tensors, and which need gradients."""
    flags = tuple([isinstance(item, Tensor) for item in values])
    return flags, [isinstance(item, Tensor) and _add_edge(item, nodes, nrs) for item in values]


def set_up(operator: Any, state: ThreadState, node: OperatorNode, args: tuple, out: Any) -> None:
    """Let the user's `setup_context` fill a node; what it computes is not recorded."""
    enabled = state.grad_enabled
    state.grad_enabled = False
    try:
        if operator.keyword_names:
            call_user(
                operator.setup_context,
                ctx=node,
                inputs=args[: operator.positional],
                keyword_only_inputs=operator.keywords_of(args),
                output=out,
            )
        else:
            call_user(operator.setup_context, ctx=node, inputs=args, output=out)
    finally:
        state.grad_enabled = enabled
    if operator.has_lists and hasattr(node, "_pt_metadata"):
        raise RuntimeError(
            "Please don't set ctx._pt_metadata; the structure of lists of tensors is kept under "
            f"this name, and {operator.name} has lists. Choose another name"
        )
    if node.dirty_tensors is not None:
        raise RuntimeError(
            f"ctx.mark_dirty() is not for operators: what {operator.name} changes is part of its "
            "schema, see mutates_args"
        )


def formula_gradients(operator: Any, args: tuple, out: Any, grads: list, needs: tuple) -> list:
    """What an operator's formula makes of the gradients of its results, outside of any graph.

    `needs` says which of the tensors among the positional arguments need a gradient; there is one
    result for each of them.
    """
    state = thread_state()
    node: Any = new_operator_node(operator, state, args, _no_output)
    wanted = iter(needs)
    node.needs_input_grad = tuple(
        [
            [next(wanted) if is_tensor else False for is_tensor in kind]
            if type(kind) is tuple
            else (next(wanted) if kind else False)
            for kind in node.input_kinds
        ]
    )
    if operator.setup_context is not None:
        set_up(operator, state, node, args, out)
    if node.to_save is not None:
        save_tensors(node, state, ())
    node.result_kinds = _structure(operator, out)
    node.outputs_meta = [(t.array.shape, t.array.dtype) for t in _tensors_in(out)]
    found = node(*grads)
    return list(found) if isinstance(found, tuple) else [found]


def _tensors_in(out: Any) -> list:
    """The tensors among the results, those in lists included, in order."""
    found: list = []
    for value in out if isinstance(out, tuple) else (out,):
        if isinstance(value, Tensor):
            found.append(value)
        elif type(value) is list:
            found.extend([item for item in value if isinstance(item, Tensor)])
    return found


def _structure(operator: Any, out: Any) -> tuple:
    """For every result whether it is a tensor, or that of the elements of a list."""
    return tuple(
        tuple([isinstance(item, Tensor) for item in value])
        if operator.returns_list(i) and type(value) is list
        else isinstance(value, Tensor)
        for i, value in enumerate(out if isinstance(out, tuple) else (out,))
    )


if not COMPILED:  # fields of a compiled class begin as None, zero and False by themselves
    OperatorNode.result_kinds = None
