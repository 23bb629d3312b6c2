"""Calling a module with its hooks: before and after forward, and around its backward."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ...autograd.function import Function
from ...autograd.grad_mode import is_grad_enabled
from ...core.handles import RemovableHandle
from ...core.tensor import Tensor
from ...dispatch.levels import check_hookable
from .registration import add_hook

# Hooks of all modules -----------------------------------------------------------------------------

_global_forward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_forward_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_backward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_backward_hooks: OrderedDict[int, Callable] = OrderedDict()
#: Whether the backward hooks of all modules see whole modules; None before the first.
_global_is_full_backward_hook: bool | None = None


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module; it may return other args."""
    return add_hook(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module.

    It may return another output. See `Module.register_forward_hook` for the options.
    """
    handle = RemovableHandle(
        _global_forward_hooks,
        extra_dict=[_global_forward_hooks_with_kwargs, _global_forward_hooks_always_called],
    )
    _global_forward_hooks[handle.id] = hook
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the backward of every module."""
    return add_hook(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` after the backward of every module."""
    return _add_global_backward_hook(hook, full=True)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` for the last operation of every module.

    The gradients are those of that operation alone; `register_module_full_backward_hook` has those
    of the modules.
    """
    return _add_global_backward_hook(hook, full=False)


def _add_global_backward_hook(hook: Callable, full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full
    return add_hook(_global_backward_hooks, hook)


def has_global_hooks() -> bool:
    """Whether there are hooks that every module has to call."""
    return bool(
        _global_forward_pre_hooks
        or _global_forward_hooks
        or _global_backward_pre_hooks
        or _global_backward_hooks
    )


# Calls --------------------------------------------------------------------------------------------


class Hooked:
    """What calls `forward`, with the hooks that are registered."""

    forward: Callable[..., Any]
    _compiled_call_impl: Callable | None = None
    _is_full_backward_hook: bool | None
    _forward_pre_hooks: OrderedDict[int, Callable]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks: OrderedDict[int, Callable]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _backward_pre_hooks: OrderedDict[int, Callable]
    _backward_hooks: OrderedDict[int, Callable]

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before each forward; it may return other arguments.

        With `with_kwargs` it is called with (module, args, kwargs) and may return a pair of both.
        """
        handle = RemovableHandle(
            self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs
        )
        self._forward_pre_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        if prepend:
            self._forward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(
        self,
        hook: Callable,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after each forward; it may return another output.

        With `with_kwargs` it is called with (module, args, kwargs, output). With `always_call` it
        runs also when forward raises, then with None as output.
        """
        handle = RemovableHandle(
            self._forward_hooks,
            extra_dict=[self._forward_hooks_with_kwargs, self._forward_hooks_always_called],
        )
        self._forward_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        if prepend:
            self._forward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are known.

        It may return other gradients, which then flow through the module.
        """
        return self._add_backward_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are known.

        It may return other gradients of the inputs.
        """
        self._choose_backward_hooks(full=True)
        return self._add_backward_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` for the last operation of the module.

        The gradients are those of that operation alone; `register_full_backward_hook` has those of
        the module.
        """
        self._choose_backward_hooks(full=False)
        return self._add_backward_hook(self._backward_hooks, hook, False)

    def _choose_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is not None and self._is_full_backward_hook is not full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = full

    def _add_backward_hook(
        self, hooks: OrderedDict[int, Callable], hook: Callable, prepend: bool
    ) -> RemovableHandle:
        handle = add_hook(hooks, hook)
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and the hooks; after `compile()` compiled, but for hooks of all modules."""
        if self._compiled_call_impl is not None and not has_global_hooks():
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
            or _global_backward_hooks
            or _global_backward_pre_hooks
        ):
            return self.forward(*args, **kwargs)
        return HookedCall(self, args, kwargs).run()


def _watch_last(module: Any, result: Any, hooks: list[Callable]) -> None:
    """Let hooks see the gradients of the operation that has made the first tensor of a result."""
    while not isinstance(result, Tensor):
        if isinstance(result, dict):
            result = next(each for each in result.values() if isinstance(each, Tensor))
        else:
            result = result[0]
    if result.grad_fn is not None:
        for hook in hooks:
            result.grad_fn.register_hook(partial(hook, module))


class HookedCall:
    """One call of a module that has hooks; knows how far it has come."""

    def __init__(self, module: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.called: set[int] = set()

    def run(self) -> Any:
        """Call the module; if it fails, hooks that are always called run before it raises."""
        try:
            return self._run()
        except Exception:
            self._run_remaining()
            raise

    def _run(self) -> Any:
        module = self.module
        self._run_pre_hooks()
        pre_hooks = [*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
        hooks: list[Callable] = []
        of_last: list[Callable] = []
        for full, found in (
            (_global_is_full_backward_hook, _global_backward_hooks),
            (module._is_full_backward_hook, module._backward_hooks),
        ):
            (hooks if full else of_last).extend(found.values())
        backward = BackwardHook(module, hooks, pre_hooks) if hooks or pre_hooks else None
        if backward is not None:
            self.args = backward.setup_input_hook(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        for _, number, hook, with_kwargs, _ in self._forward_hooks():
            self._run_forward_hook(number, hook, with_kwargs)
        if backward is not None:
            if not isinstance(self.result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple "
                    f"of Tensors but received {type(self.result)}",
                    stacklevel=5,
                )
            self.result = backward.setup_output_hook(self.result)
        if of_last:
            _watch_last(module, self.result, of_last)
        return self.result

    def _run_pre_hooks(self) -> None:
        module = self.module
        own = module._forward_pre_hooks.items()
        for number, hook in [*_global_forward_pre_hooks.items(), *own]:
            if number in module._forward_pre_hooks_with_kwargs:
                changed = hook(module, self.args, self.kwargs)
                if changed is None:
                    continue
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                        f"but got {changed}."
                    )
                self.args, self.kwargs = changed
            else:
                changed = hook(module, self.args)
                if changed is not None:
                    self.args = changed if isinstance(changed, tuple) else (changed,)

    def _run_forward_hook(self, number: int, hook: Callable, with_kwargs: bool) -> None:
        self.called.add(number)
        if with_kwargs:
            changed = hook(self.module, self.args, self.kwargs, self.result)
        else:
            changed = hook(self.module, self.args, self.result)
        if changed is not None:
            self.result = changed

    def _forward_hooks(self) -> list[tuple[str, int, Callable, bool, bool]]:
        """All forward hooks in order: kind, number, hook, with keywords or not, always or not."""
        module = self.module
        tables: tuple[tuple[str, Any, Any, Any], ...] = (
            (
                "global module",
                _global_forward_hooks,
                _global_forward_hooks_with_kwargs,
                _global_forward_hooks_always_called,
            ),
            (
                "module",
                module._forward_hooks,
                module._forward_hooks_with_kwargs,
                module._forward_hooks_always_called,
            ),
        )
        return [
            (kind, number, hook, number in with_kwargs, number in always)
            for kind, hooks, with_kwargs, always in tables
            for number, hook in hooks.items()
        ]

    def _run_remaining(self) -> None:
        """Run the hooks that are always called and were not; what they raise becomes a warning."""
        for kind, number, hook, with_kwargs, always in self._forward_hooks():
            if not always or number in self.called:
                continue
            try:
                self._run_forward_hook(number, hook, with_kwargs)
            except Exception as error:
                warnings.warn(
                    f"{kind} forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error}",
                    stacklevel=5,
                )


# Backward -----------------------------------------------------------------------------------------


class BackwardHookFunction(Function):
    """Returns its arguments: the nodes of these calls stand at both ends of a module."""

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> tuple[Tensor, ...]:
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        return grads


class BackwardHook:
    """Calls a module's backward hooks, from nodes before its inputs and after its outputs.

    `user_pre_hooks` get the gradients of the outputs and may replace them; `user_hooks` get those
    of inputs and outputs and may replace those of the inputs.
    """

    def __init__(
        self, module: Any, user_hooks: list[Callable], user_pre_hooks: list[Callable]
    ) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: Any = None
        self.input_count = self.output_count = -1
        self.input_positions: list[int] | None = None
        self.output_positions: list[int] | None = None

    def setup_input_hook(self, args: tuple) -> tuple:
        """The arguments, behind a node that tells when their gradients are known."""
        self.input_count = len(args)
        result, self.input_positions = _behind_node(args, self._watch_inputs)
        return result

    def setup_output_hook(self, result: Any) -> Any:
        """The results, behind a node that tells when their gradients are known."""
        results = result if isinstance(result, tuple) else (result,)
        self.output_count = len(results)
        made, self.output_positions = _behind_node(results, self._watch_outputs)
        return made if isinstance(result, tuple) else made[0]

    def _watch_inputs(self, node: Any) -> None:
        node.register_hook(self._inputs_arrived)

    def _watch_outputs(self, node: Any) -> None:
        node.register_prehook(self._outputs_arrived)

    def _inputs_arrived(self, grad_inputs: tuple, _: tuple) -> Any:
        if self.grad_outputs is None:
            return None  # the gradient has come by a way past the outputs
        positions = self.input_positions or []
        gradients: Any = _spread(positions, grad_inputs, self.input_count)
        for hook in self.user_hooks:
            changed = hook(self.module, gradients, self.grad_outputs)
            if changed is not None:
                changed = _as_tuple(changed)
                _check_count("Backward hook", "grad_input", changed, gradients)
                gradients = changed
        self.grad_outputs = None
        return tuple(gradients[i] for i in positions)

    def _outputs_arrived(self, grad_outputs: tuple) -> Any:
        positions = self.output_positions or []
        gradients: Any = _spread(positions, grad_outputs, self.output_count)
        for hook in self.user_pre_hooks:
            changed = hook(self.module, gradients)
            if changed is not None:
                changed = _as_tuple(changed)
                _check_count("Backward pre hook", "grad_output", changed, gradients)
                gradients = changed
        self.grad_outputs = gradients
        if (
            self.input_positions is None and self.user_hooks
        ):  # no node before the inputs will call the hooks
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module "
                "outputs since no inputs require gradients.",
                stacklevel=2,
            )
            without = _spread([], (), self.input_count)
            for hook in self.user_hooks:
                changed = hook(self.module, without, gradients)
                if changed is not None and any(each is not None for each in _as_tuple(changed)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always "
                        "return None or None for all gradients."
                    )
            self.grad_outputs = None
        return tuple(gradients[i] for i in positions)


def _behind_node(values: tuple, watch: Callable[[Any], None]) -> tuple[Any, list[int] | None]:
    """The values with their tensors passed through a node, and the positions of these.

    Without a tensor that requires gradients nothing is done, and there are no positions.
    """
    positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    tensors = [values[i] for i in positions]
    if not (is_grad_enabled() and any(t.requires_grad for t in tensors)):
        return values, None
    for t in tensors:
        check_hookable(t, "a module's backward hook")
    passed = BackwardHookFunction.apply(*tensors)
    node = next(t.grad_fn for t in passed if t.grad_fn is not None)
    watch(node)
    made = list(values)
    for i, value in zip(positions, passed, strict=True):
        made[i] = value
    if hasattr(values, "_make"):  # a named tuple
        return values._make(made), positions
    return type(values)(made), positions


def _spread(positions: Iterable[int], values: Iterable[Any], count: int) -> tuple:
    """A tuple with the values at their positions and None elsewhere."""
    spread: list[Any] = [None] * count
    for i, value in zip(positions, values, strict=True):
        spread[i] = value
    return tuple(spread)


def _as_tuple(value: Any) -> tuple:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _check_count(kind: str, what: str, changed: tuple, expected: tuple) -> None:
    if len(changed) != len(expected):
        raise RuntimeError(
            f"{kind} returned an invalid number of {what}, got {len(changed)}, but expected "
            f"{len(expected)}"
        )
