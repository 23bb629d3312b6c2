"""Functions with lists of tensors, and formulas of operators as kernels for the Autograd key.

The formulas of `wengert.library.register_autograd` do not come through here: their nodes know lists
themselves. This is for Functions and kernels that programs make on their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ..autograd import Function
from ..core.state import thread_state
from ..core.tensor import Tensor, requires_of
from ..core.trees.pytree import TreeSpec, tree_flatten, tree_unflatten
from ..library.keys import DispatchKeySet, after_autograd_keyset
from ..library.overloads import OpOverload
from ..library.schema import FunctionSchema


class InfoProtocol(Protocol):
    """A formula: `backward`, and `setup_context`, which keeps what `backward` reads."""

    _backward_fn: Callable[..., Any] | None
    _setup_context_fn: Callable[..., Any] | None


@dataclass
class Info:
    """A formula that is nothing else."""

    _backward_fn: Callable[..., Any] | None
    _setup_context_fn: Callable[..., Any] | None


@dataclass
class _Call:
    """What a recorded call of an operator needs besides its positional arguments."""

    keyset: DispatchKeySet
    keywords: dict[str, Any]


def make_autograd_impl(op: OpOverload, info: InfoProtocol) -> Callable[..., Any]:
    """The kernel that records calls of `op` with a formula, to be registered with its keyset.

    ``library.impl(name, make_autograd_impl(op, info), "Autograd", with_keyset=True)`` gives the
    operator a derivative. Without a `_backward_fn`, a backward through it raises.
    """
    schema = op._schema

    def run(call: _Call, args: tuple) -> Any:
        return op.redispatch(call.keyset & after_autograd_keyset, *args, **call.keywords)

    def forward(ctx: Any, call: _Call, *args: Any) -> Any:
        result = run(call, args)
        if info._setup_context_fn is not None:
            inputs, keywords = _with_defaults(schema, args, call.keywords)
            given = {"keyword_only_inputs": keywords} if keywords else {}
            info._setup_context_fn(ctx=ctx, inputs=inputs, output=result, **given)
        return result

    def backward(ctx: Any, *grads: Any) -> tuple:
        if info._backward_fn is None:
            raise RuntimeError(
                f"Trying to backward through {op} but no autograd formula was registered. Use "
                "register_autograd to add one."
            )
        all_needs = ctx.needs_input_grad
        ctx.needs_input_grad = all_needs[1:]
        try:
            found = info._backward_fn(ctx, *grads)
        finally:
            ctx.needs_input_grad = all_needs
        return (None, *found) if isinstance(found, tuple) else (None, found)

    generated: Any = type(
        f"GeneratedBackwardFor_{op._namespace}_{op._opname}_{op._overloadname}",
        (Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward)},
    )
    if any(_is_tensor_list(value.type) for value in (*schema.arguments, *schema.returns)):
        generated = supports_tensorlist(generated)

    def autograd_impl(keyset: DispatchKeySet, *args: Any, **keywords: Any) -> Any:
        call = _Call(keyset, keywords)
        leaves = tree_flatten(args, not_list_of_tensor)[0]
        if thread_state().recording() and any(
            isinstance(leaf, Tensor) and requires_of(leaf) for leaf in leaves
        ):
            return generated.apply(call, *args)
        return run(call, args)

    return autograd_impl


def _is_tensor_list(kind: Any) -> bool:
    return kind.text("", None) in ("Tensor[]", "Tensor?[]")


def _with_defaults(
    schema: FunctionSchema, args: tuple, keywords: dict[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    """The positional and the keyword-only arguments of a call, defaults filled in."""
    positional = [a for a in schema.arguments if not a.kwarg_only]
    named = [a for a in schema.arguments if a.kwarg_only]
    return (
        (*args, *[a.default_value for a in positional[len(args) :]]),
        {a.name: keywords.get(a.name, a.default_value) for a in named},
    )


# Lists --------------------------------------------------------------------------------------------


@dataclass
class _Structure:
    """How the arguments and the results of one call are nested."""

    inputs: TreeSpec
    outputs: TreeSpec | None = None
    returns_tuple: bool = False


def supports_tensorlist(cls: Any) -> Any:
    """Let a Function take and return lists of tensors; a decorator, which changes the class.

    `forward` gets and returns lists, `backward` gets a list of gradients for each list that was
    returned, and returns a list of gradients, some of them None, for each list that was given.
    ``ctx.needs_input_grad`` is nested as the arguments are.

    >>> import wengert
    >>> from wengert._library.autograd import supports_tensorlist
    >>> @supports_tensorlist
    ... class Total(wengert.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, tensors):
    ...         ctx.count = len(tensors)
    ...         return sum(tensors)
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return [grad] * ctx.count
    >>> x, y = wengert.ones(2, requires_grad=True), wengert.ones(2, requires_grad=True)
    >>> Total.apply([x, y, y]).sum().backward()
    >>> x.grad, y.grad
    (tensor([1., 1.]), tensor([2., 2.]))
    """
    nested_forward, nested_backward, flat_apply = cls.forward, cls.backward, cls.apply

    def forward(ctx: Any, *flat: Any) -> tuple:
        structure = flat[-1] if flat else None
        if not isinstance(structure, _Structure):
            raise NotImplementedError(
                "NYI: calling supports_tensorlist autograd.Function.forward directly. Call .apply"
            )
        result = nested_forward(ctx, *tree_unflatten(flat[:-1], structure.inputs))
        structure.returns_tuple = isinstance(result, tuple)
        outputs = result if structure.returns_tuple else (result,)
        flat_outputs, structure.outputs = tree_flatten(outputs, not_list_of_tensor)
        if hasattr(ctx, "_pt_metadata"):
            raise RuntimeError(
                "Please don't set ctx._pt_metadata; the structure of lists of tensors is kept "
                "under this name. Choose another name"
            )
        ctx._pt_metadata = structure
        return tuple(flat_outputs)

    def backward(ctx: Any, *grads: Any) -> tuple:
        structure = getattr(ctx, "_pt_metadata", None)
        if structure is None:
            raise NotImplementedError(
                "NYI: calling supports_tensorlist autograd.Function.backward directly. It is for "
                "the engine"
            )
        flat_needs = ctx.needs_input_grad
        ctx.needs_input_grad = tree_unflatten(list(flat_needs[:-1]), structure.inputs)
        try:
            found = nested_backward(ctx, *tree_unflatten(list(grads), structure.outputs))
        finally:
            ctx.needs_input_grad = flat_needs
        found = found if isinstance(found, tuple) else (found,)
        flat, spec = tree_flatten(found, not_list_of_optional_tensor)
        if spec != structure.inputs:
            raise RuntimeError(
                "Expected the return from backward to be of the same structure as the inputs. Got: "
                f"{spec} (return from backward), {structure.inputs} (inputs)"
            )
        return (*flat, None)

    def apply(*args: Any) -> Any:
        flat, inputs = tree_flatten(args, not_list_of_tensor)
        structure = _Structure(inputs)
        flat_outputs = flat_apply(*flat, structure)
        assert structure.outputs is not None
        outputs = tree_unflatten(list(flat_outputs), structure.outputs)
        return outputs if structure.returns_tuple else outputs[0]

    cls.forward, cls.backward = staticmethod(forward), staticmethod(backward)
    cls.apply = staticmethod(apply)
    return cls


def not_list_of_tensor(tree: Any) -> bool:
    """Whether flattening stops here: at all but tuples and lists of nothing but tensors."""
    if isinstance(tree, list):
        return not all(isinstance(item, Tensor) for item in tree)
    return not isinstance(tree, tuple)


def not_list_of_optional_tensor(tree: Any) -> bool:
    """Whether flattening stops here: at all but tuples, and lists of tensors and None."""
    if isinstance(tree, list):
        return not all(item is None or isinstance(item, Tensor) for item in tree)
    return not isinstance(tree, tuple)
