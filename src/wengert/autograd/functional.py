"""Jacobians, Hessians and their products with vectors, for plain functions of tensors.

`inputs` is a tensor or a tuple of tensors, and every result is nested the way its inputs and the
function's outputs are. A result is part of a graph only with `create_graph=True`. A derivative
that is absent is filled in as zeros, and refused with `strict=True`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import wengert
from wengert.func.mapping import vmap_tangents

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]

_IN_STRICT_MODE = "This is not allowed in strict mode"

# Keyed by the derivative at hand: what to say when autograd reports none ("{}" is the position).
_INDEPENDENT = {
    "vjp": f"The output of the user-provided function is independent of input {{}}."
    f" {_IN_STRICT_MODE}.",
    "jvp": "The gradient with respect to the input is independent of entry {} in the grad_outputs"
    f" when using the double backward trick to compute forward mode gradients. {_IN_STRICT_MODE}.",
    "vhp": f"The jacobian of the user-provided function is independent of input {{}}."
    f" {_IN_STRICT_MODE}.",
    "hvp": "The hessian of the user-provided function is independent of entry {} in the"
    f" grad_jacobian. {_IN_STRICT_MODE} as it prevents from using the double backward trick to"
    " replace forward mode AD.",
}
# Of derivatives that are there, but constant although create_graph=True asked for a graph.
_CONSTANT = {
    caller: f"The {derivative} of the user-provided function is independent of input {{}}."
    f" {_IN_STRICT_MODE} when create_graph=True."
    for caller, derivative in (
        ("vjp", "jacobian"),
        ("jvp", "jacobian"),
        ("vhp", "hessian"),
        ("hvp", "hessian"),
    )
}
_OUTPUT_NOT_DIFFERENTIABLE = (
    "Output {} of the user-provided function does not require gradients. The outputs must be"
    " computed in a differentiable manner from the input when running in strict mode."
)
_GRADIENT_CONSTANT = (
    "The gradient with respect to input {} is independent of the inputs of the user-provided"
    f" function. {_IN_STRICT_MODE}."
)
_JACOBIAN_CONSTANT = (
    "While computing the hessian, found that the jacobian of the user-provided function with"
    f" respect to input {{}} is independent of the input. {_IN_STRICT_MODE}. The function must be"
    " twice differentiable and its jacobian must depend on the inputs, which rules out a linear"
    " function."
)
_HESSIAN_CONSTANT = (
    "The hessian of the user-provided function with respect to input {} is independent of the"
    f" input. {_IN_STRICT_MODE}. The function must be thrice differentiable and its hessian must"
    " depend on the inputs."
)
_STRATEGIES = ("forward-mode", "reverse-mode")

Tensors = tuple["wengert.Tensor", ...]
MaybeTensors = tuple["wengert.Tensor | None", ...]


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and the product of `v` with its Jacobian, one term per input.

    `v` is shaped like the outputs and may be left out when there is one output of one element.
    """
    with wengert.enable_grad():
        inputs, unpack_inputs = _prepared_inputs(inputs, "vjp", create_graph)
        outputs, unpack_outputs = _called(func, inputs, "vjp", strict)
        if v is None:
            if len(outputs) != 1 or outputs[0].numel() != 1:
                raise RuntimeError(
                    "The vector v can only be None if the user-provided function returns a single"
                    " Tensor with a single element."
                )
        else:
            v = _prepared_vector(v, "vjp", outputs, unpack_outputs, create_graph)
    with _grad_mode(create_graph):
        grads = _gradients(outputs, inputs, v, create_graph=create_graph)
        product = _filled(grads, inputs, "vjp", create_graph, strict)
    return (
        _handed_back(outputs, create_graph, unpack_outputs),
        _handed_back(product, create_graph, unpack_inputs),
    )


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and the product of its Jacobian with `v`, one term per output.

    `v` is shaped like the inputs and may be left out when there is one input of one element. The
    vector-Jacobian product is linear in its vector; differentiating it in that vector gives this.
    """
    with wengert.enable_grad():
        inputs, v, unpack_inputs = _inputs_and_vector(inputs, v, "jvp", create_graph)
        outputs, unpack_outputs = _called(func, inputs, "jvp", strict)
        _require_output(outputs, IndexError("tuple index out of range: there is no output"))
    product = _jacobian_times(
        v, outputs, outputs, inputs, "jvp", create_graph, strict, _GRADIENT_CONSTANT
    )
    return (
        _handed_back(outputs, create_graph, unpack_outputs),
        _handed_back(product, create_graph, unpack_outputs),
    )


def _jacobian_times(
    v: Any,
    outputs: Any,
    shapes: Any,
    inputs: Any,
    name: str,
    create_graph: bool,
    strict: bool,
    constant: str,
) -> Any:
    """The product of the Jacobian of `outputs` by `inputs` with `v`: its transpose, transposed.

    `shapes` are tensors like the outputs, of which some may be None for zero.
    """
    with wengert.enable_grad():
        cotangents = tuple(wengert.zeros_like(like, requires_grad=True) for like in shapes)
        pulled_back = _gradients(outputs, inputs, cotangents, create_graph=True)
        if strict:
            _require_graph(pulled_back, constant)
    with _grad_mode(create_graph):
        grads = _gradients(pulled_back, cotangents, v, create_graph=create_graph)
        return _filled(grads, shapes, name, create_graph, strict)


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return the single-element `func(*inputs)` and the product of `v` with its Hessian."""
    with wengert.enable_grad():
        inputs, v, unpack_inputs = _inputs_and_vector(inputs, v, "vhp", create_graph)
        output, gradient = _scalar_and_gradient(func, inputs, "vhp", strict)
    with _grad_mode(create_graph):
        grads = _gradients(gradient, inputs, v, create_graph=create_graph)
        product = _filled(grads, inputs, "vhp", create_graph, strict)
    return (
        _handed_back(output, create_graph, True),
        _handed_back(product, create_graph, unpack_inputs),
    )


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return the single-element `func(*inputs)` and the product of its Hessian with `v`.

    Costs one more pass than `vhp`, which is the same vector wherever the Hessian is symmetric.
    """
    with wengert.enable_grad():
        inputs, v, unpack_inputs = _inputs_and_vector(inputs, v, "hvp", create_graph)
        output, gradient = _scalar_and_gradient(func, inputs, "hvp", strict)
    product = _jacobian_times(
        v, gradient, inputs, inputs, "hvp", create_graph, strict, _HESSIAN_CONSTANT
    )
    return (
        _handed_back(output, create_graph, True),
        _handed_back(product, create_graph, unpack_inputs),
    )


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of `func`: for each output and input a tensor of both their shapes.

    The result is indexed by output, then by input; a level is left out where `func` returns, or
    `inputs` is, a lone tensor. `vectorize` computes all rows (or, with the "forward-mode"
    strategy, all columns) as one batch.
    """
    if strategy not in _STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: forward mode'
            " suits a function with more outputs than inputs, reverse mode any other."
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    with wengert.enable_grad():
        inputs, unpack_inputs = _prepared_inputs(inputs, "jacobian", create_graph)
        outputs, unpack_outputs = _called(func, inputs, "jacobian", strict)
        if vectorize:
            _require_output(outputs, AssertionError("Expected at least one tensor in the output"))
            if strict:
                raise RuntimeError(
                    "wengert.autograd.functional.jacobian: `strict=True` and `vectorized=True` are"
                    " not supported together. Please set one of them to False."
                )
            blocks = _batched_rows(outputs, inputs, create_graph)
        else:
            _require_output(outputs, IndexError("tuple index out of range: there is no output"))
            blocks = tuple(
                _rows(index, out, inputs, create_graph, strict) for index, out in enumerate(outputs)
            )
    rows = tuple(_handed_back(block, create_graph, unpack_inputs) for block in blocks)
    return rows[0] if unpack_outputs else rows


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the second derivatives of the single-element `func(*inputs)`.

    For each pair of inputs a tensor of both their shapes, nested as a tuple of tuples unless
    `inputs` is a lone tensor. `outer_jacobian_strategy` is how the gradient is differentiated.
    """
    if outer_jacobian_strategy not in _STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    inputs, unpack_inputs = _as_tuple(inputs, "inputs", "hessian")

    def scalar_function(*args: wengert.Tensor) -> wengert.Tensor:
        outputs, unpack_outputs = _called(func, args, "hessian", strict)
        _require_scalar(outputs, unpack_outputs, "hessian")
        return outputs[0].squeeze()

    def gradient(*args: wengert.Tensor) -> Tensors:
        if outer_jacobian_strategy == "forward-mode":
            for arg in args:
                if not arg.requires_grad:
                    arg.requires_grad = True
        result = jacobian(scalar_function, args, create_graph=True)
        if strict:
            _require_graph(result, _JACOBIAN_CONSTANT)
        return result

    blocks = jacobian(
        gradient, inputs, create_graph, strict, vectorize, strategy=outer_jacobian_strategy
    )
    return blocks[0][0] if unpack_inputs else blocks


_OUTPUTS = "outputs of the user-provided function"


def _as_tuple(value: Any, what: str, caller: str) -> tuple[Tensors, bool]:
    """The tensors in `value`, and whether it was a lone tensor that results should mirror."""
    entries = value if isinstance(value, tuple) else (value,)
    for index, entry in enumerate(entries):
        if not isinstance(entry, wengert.Tensor):
            culprit = (
                f"the value at index {index}" if isinstance(value, tuple) else f"the given {what}"
            )
            raise TypeError(
                f"The {what} given to {caller} must be either a Tensor or a tuple of Tensors but"
                f" {culprit} has type {type(entry)}."
            )
    return entries, not isinstance(value, tuple)


def _prepared_inputs(inputs: Any, caller: str, create_graph: bool) -> tuple[Tensors, bool]:
    entries, unpack = _as_tuple(inputs, "inputs", caller)
    return _fresh(entries, create_graph, requires_grad=True), unpack


def _fresh(tensors: Tensors, create_graph: bool, requires_grad: bool) -> Tensors:
    """Aliases of `tensors`, new to autograd but linked to the caller's graph if one is wanted."""
    return tuple(
        tensor.view_as(tensor)
        if create_graph and tensor.requires_grad
        else tensor.detach().requires_grad_(requires_grad)
        for tensor in tensors
    )


def _prepared_vector(
    v: Any, caller: str, like: Tensors, like_unpacked: bool, create_graph: bool
) -> Tensors:
    """The vector as a tuple, checked to have the lengths and shapes of `like`."""
    entries, _ = _as_tuple(v, "v", caller)
    if len(entries) != len(like):
        if like_unpacked:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(entries)}."
        )
    for index, (entry, other) in enumerate(zip(entries, like, strict=True)):
        if entry.shape != other.shape:
            subject = "v" if like_unpacked else f"Entry {index} in v"
            raise RuntimeError(
                f"{subject} has invalid size: should be {other.shape} but got {entry.shape}."
            )
    return _fresh(entries, create_graph, requires_grad=False)


def _inputs_and_vector(
    inputs: Any, v: Any, caller: str, create_graph: bool
) -> tuple[Tensors, Tensors | None, bool]:
    """The inputs and a vector shaped like them, both ready for differentiation."""
    entries, unpack = _prepared_inputs(inputs, caller, create_graph)
    if v is not None:
        return entries, _prepared_vector(v, caller, entries, unpack, create_graph), unpack
    if len(entries) != 1 or entries[0].numel() != 1:
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single"
            " Tensor with a single element."
        )
    return entries, None, unpack


def _called(
    func: Callable[..., Any], inputs: Tensors, caller: str, strict: bool
) -> tuple[Tensors, bool]:
    outputs, unpack = _as_tuple(func(*inputs), _OUTPUTS, caller)
    if strict:
        _require_graph(outputs, _OUTPUT_NOT_DIFFERENTIABLE)
    return outputs, unpack


def _scalar_and_gradient(
    func: Callable[..., Any], inputs: Tensors, caller: str, strict: bool
) -> tuple[Tensors, MaybeTensors]:
    outputs, unpack = _called(func, inputs, caller, strict)
    _require_scalar(outputs, unpack, caller)
    gradient = _gradients(outputs, inputs, create_graph=True)
    if strict:
        _require_graph(gradient, _JACOBIAN_CONSTANT)
    return outputs, gradient


def _require_scalar(outputs: Tensors, unpacked: bool, caller: str) -> None:
    if not unpacked:
        raise RuntimeError(f"The function given to {caller} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {caller} should contain a single element"
        )


def _require_output(outputs: Tensors, error: Exception) -> None:
    """Refuse an empty tuple as PyTorch's programs know it."""
    if not outputs:
        raise error


def _require_graph(tensors: MaybeTensors, when_constant: str) -> None:
    for index, tensor in enumerate(tensors):
        if tensor is None:
            raise RuntimeError(_INDEPENDENT["vjp"].format(index))
        if not tensor.requires_grad:
            raise RuntimeError(when_constant.format(index))


def _grad_mode(create_graph: bool) -> Any:
    return wengert.set_grad_enabled(create_graph or wengert.is_grad_enabled())


def _gradients(
    outputs: MaybeTensors,
    inputs: Tensors,
    cotangents: Tensors | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    batched: bool = False,
) -> MaybeTensors:
    """`autograd.grad` that passes over outputs without a graph; None for an unused input."""
    seeds: Iterable[wengert.Tensor | None] = cotangents or (None,) * len(outputs)
    recorded = [
        (out, seed)
        for out, seed in zip(outputs, seeds, strict=True)
        if out is not None and out.requires_grad
    ]
    if not recorded:
        return (None,) * len(inputs)
    roots, seeds = zip(*recorded, strict=True)
    return wengert.autograd.grad(
        roots,
        inputs,
        seeds,
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=batched,
    )


def _filled(
    grads: MaybeTensors, like: Tensors, caller: str, create_graph: bool, strict: bool
) -> Tensors:
    """The gradients with zeros for absent ones, or an error for these in strict mode."""
    if strict:
        for index, grad in enumerate(grads):
            if grad is None:
                raise RuntimeError(_INDEPENDENT[caller].format(index))
            if create_graph and not grad.requires_grad:
                raise RuntimeError(_CONSTANT[caller].format(index))
    return tuple(
        wengert.zeros_like(other) if grad is None else grad
        for grad, other in zip(grads, like, strict=True)
    )


def _handed_back(tensors: Tensors, create_graph: bool, unpack: bool) -> Any:
    if not create_graph:
        tensors = tuple(tensor.detach() for tensor in tensors)
    return tensors[0] if unpack else tensors


def _rows(
    position: int, out: wengert.Tensor, inputs: Tensors, create_graph: bool, strict: bool
) -> Tensors:
    """The Jacobian blocks of one output, by one backward pass for each of its elements."""
    if out.is_complex() and out.requires_grad:
        raise RuntimeError(
            "jacobian: grad can be implicitly created only for real scalar outputs but got"
            f" {out.dtype}; differentiate its real and imaginary parts."
        )
    rows: list[list[wengert.Tensor]] = [[] for _ in inputs]
    for element in range(out.numel()):
        seed = wengert.zeros(out.shape, dtype=out.dtype, device=out.device)
        seed.view(-1)[element] = 1
        grads = _gradients((out,), inputs, (seed,), create_graph=create_graph, retain_graph=True)
        for index, (grad, inp) in enumerate(zip(grads, inputs, strict=True)):
            if grad is None:
                if strict:
                    raise RuntimeError(
                        f"Output {position} of the user-provided function is independent of input"
                        f" {index}. {_IN_STRICT_MODE}."
                    )
                grad = wengert.zeros_like(inp)
            elif strict and create_graph and not grad.requires_grad:
                raise RuntimeError(_CONSTANT["vjp"].format(index))
            rows[index].append(grad)
    return tuple(
        wengert.stack(grads).view((*out.shape, *inp.shape))
        if grads
        else wengert.zeros((*out.shape, *inp.shape), dtype=inp.dtype, device=inp.device)
        for grads, inp in zip(rows, inputs, strict=True)
    )


def _batched_rows(outputs: Tensors, inputs: Tensors, create_graph: bool) -> tuple[Tensors, ...]:
    """All Jacobian blocks by one backward pass over the standard basis of the outputs."""
    cotangents = _standard_basis(outputs)
    grads = _gradients(outputs, inputs, cotangents, create_graph=create_graph, batched=True)
    sizes = [out.numel() for out in outputs]
    by_input = [
        (inp.new_zeros((sum(sizes), *inp.shape)) if grad is None else grad).split(sizes)
        for grad, inp in zip(grads, inputs, strict=True)
    ]
    return tuple(
        tuple(
            blocks[index].reshape((*out.shape, *inp.shape))
            for blocks, inp in zip(by_input, inputs, strict=True)
        )
        for index, out in enumerate(outputs)
    )


def _forward_jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, vectorize: bool
) -> Any:
    """The Jacobian by one batched forward-mode pass over the standard basis of the inputs."""
    name = "wengert.autograd.functional.jacobian"
    if create_graph:
        raise NotImplementedError(
            f'{name}: `create_graph=True` and `strategy="forward-mode"` are not supported together'
            ' (yet). Use `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict:
        raise RuntimeError(
            f'{name}: `strict=True` and `strategy="forward-mode"` are not supported together'
            ' (yet). Use `strict=False` or `strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only"
            " implemented for `vectorize=True`."
        )
    entries, unpack_inputs = _as_tuple(inputs, "inputs", "jacobian")
    unpack_outputs = False
    shapes: list[Any] = []

    def pushed_forward(*tangents: wengert.Tensor) -> Tensors:
        nonlocal unpack_outputs
        forward_ad = wengert.autograd.forward_ad
        with forward_ad.dual_level():
            duals = tuple(map(forward_ad.make_dual, entries, tangents))
            outputs, unpack_outputs = _as_tuple(func(*duals), "outputs", "jacobian")
            shapes[:] = [out.shape for out in outputs]
            unpacked = [forward_ad.unpack_dual(out) for out in outputs]
            return tuple(
                wengert.zeros_like(primal) if tangent is None else tangent
                for primal, tangent in unpacked
            )

    columns = vmap_tangents(pushed_forward)(*_standard_basis(entries))
    sizes = [inp.numel() for inp in entries]
    rows = []
    for tangents, shape in zip(columns, shapes, strict=True):
        # The basis dimension comes first; a Jacobian is indexed by its output first.
        blocks = tangents.permute(*range(1, tangents.dim()), 0).split(sizes, dim=-1)
        block = tuple(
            part.reshape((*shape, *inp.shape)) for part, inp in zip(blocks, entries, strict=True)
        )
        rows.append(_handed_back(block, False, unpack_inputs))
    return rows[0] if unpack_outputs else tuple(rows)


def _standard_basis(tensors: Tensors) -> Tensors:
    """Batches of unit vectors of the space that `tensors` span together, one batch per tensor."""
    total = sum(tensor.numel() for tensor in tensors)
    batches = []
    start = 0
    for tensor in tensors:
        size = tensor.numel()
        batch = wengert.zeros(total, size, dtype=tensor.dtype, device=tensor.device)
        batch.narrow(0, start, size).diagonal().fill_(1)
        batches.append(batch.view((total, *tensor.shape)))
        start += size
    return tuple(batches)
