"""`custom_op` and the object it makes of a function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, overload

from ..core.devices import device
from ..core.state import overriding
from ..dispatch.binding import bind_overload
from ..dispatch.torch_dispatch import register_rule
from .operator import ANY_DEVICE, CustomOperator
from .overloads import OpOverload, add_custom, overload_of, split_qualname
from .schema import FunctionSchema, parse_schema
from .signatures import infer_schema
from .tags import Tag, Tags, tag_tuple

DeviceTypes = str | Sequence[str] | None


@overload
def custom_op(
    name: str,
    fn: None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: DeviceTypes = None,
    schema: str | None = None,
    tags: Tags = None,
) -> Callable[[Callable[..., Any]], CustomOpDef]: ...


@overload
def custom_op(
    name: str,
    fn: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: DeviceTypes = None,
    schema: str | None = None,
    tags: Tags = None,
) -> CustomOpDef: ...


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: DeviceTypes = None,
    schema: str | None = None,
    tags: Tags = None,
) -> Any:
    """Make a function an operator, as a decorator or by a call.

    `name` is ``namespace::name``. The function is the kernel for `device_types`, None meaning all.
    Its annotations give the schema, unless `schema` is given, as ``(Tensor x) -> Tensor``. It must
    return fresh tensors and change no tensors but those in `mutates_args`. `tags` are added to
    those of the overload.

    >>> import wengert
    >>> @wengert.library.custom_op("doc::double", mutates_args=())
    ... def double(x: wengert.Tensor) -> wengert.Tensor:
    ...     return wengert.from_numpy(x.numpy() * 2)
    >>> double.register_autograd(lambda ctx, grad: grad * 2)
    >>> x = wengert.ones(2, requires_grad=True)
    >>> double(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def define(function: Callable[..., Any]) -> CustomOpDef:
        namespace, opname = split_qualname(name)
        text = schema
        if text is None:
            text = infer_schema(function, mutates_args=mutates_args)
        elif not text.lstrip().startswith("("):
            raise ValueError(
                f"custom_op({name!r}): expected schema to look like e.g. \"(Tensor x) -> Tensor\" "
                f"but got {text!r}"
            )
        parsed = parse_schema(f"{namespace}::{opname}{text}")
        if schema is not None:
            _check_mutated(parsed, mutates_args, schema)
        if any(a.kwarg_only and a.type.base == "Tensor" for a in parsed.arguments):
            raise NotImplementedError(
                f"custom_op with kwarg-only Tensor args: tensors must not be keyword-only. Got: "
                f"{parsed}"
            )
        all_tags = tag_tuple((Tag.pt2_compliant_tag, *tag_tuple(tags)))
        return CustomOpDef(parsed, function, _device_names(device_types), all_tags)

    return define if fn is None else define(fn)


def _check_mutated(parsed: FunctionSchema, mutates_args: str | Iterable[str], text: str) -> None:
    mutated = {a.name for a in parsed.arguments if a.is_write}
    given = (
        {a.name for a in parsed.arguments if a.type.base == "Tensor"}
        if mutates_args == "unknown"
        else set(mutates_args)
    )
    if mutated != given:
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
            f"`schema={text}`. The schema says that it mutates {mutated or 'nothing'}, "
            "`mutates_args` says otherwise: the two must be consistent"
        )


def _device_names(device_types: DeviceTypes) -> list[str]:
    if device_types is None:
        return [ANY_DEVICE]
    names = [device_types] if isinstance(device_types, str) else list(device_types)
    return [device(name).type for name in names]


class CustomOpDef:
    """A custom operator with one overload, and the ways to complete it."""

    def __init__(
        self,
        schema: FunctionSchema,
        fn: Callable[..., Any],
        device_names: list[str],
        tags: tuple[Tag, ...] = (),
    ) -> None:
        self._operator = CustomOperator(schema, tags)
        self._namespace, self._name = schema.name.split("::")
        self._qualname = self._operator.name
        self._schema = str(schema)[len(self._qualname) :]
        self._init_fn = fn
        self._backend_fns: dict[str, Callable[..., Any]] = {}
        self._disabled: set[str] = set()
        self._operator.records = True
        self._operator.checks_aliases = True
        self._operator.kernels["meta"] = self._no_fake
        self.__doc__ = fn.__doc__
        self.__name__ = getattr(fn, "__name__", self._name)
        self.__wrapped__ = fn
        self._check_devices(device_names)
        add_custom(self._operator, replace=True)
        for name in device_names:
            self._set_kernel(name, fn)

    @property
    def _opoverload(self) -> OpOverload:
        return overload_of(self._operator)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        operator = self._operator
        if overriding.possible:
            return operator(*args, **kwargs)
        try:
            bound = bind_overload(operator, args, kwargs)
        except RuntimeError:
            return operator(*args, **kwargs)  # asks the classes of arguments, or fails the same way
        return operator.call(bound)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def _no_fake(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"There was no fake impl registered for {self!r}, so it cannot be called with meta "
            "tensors. Use `register_fake` to add one."
        )

    def _check_devices(self, names: list[str]) -> None:
        """Refuse kernels for types of devices that no argument could tell."""
        arguments = self._operator._schema.arguments
        if names != [ANY_DEVICE] and not any(
            a.type.base == "Tensor" or (a.name == "device" and a.type.base == "Device")
            for a in arguments
        ):
            raise ValueError(
                "Functions without tensor inputs are required to have a `device: wengert.device` "
                f"argument, or a kernel for all devices (device_types=None): {self._qualname} has "
                "neither"
            )

    def _set_kernel(self, name: str, fn: Callable[..., Any]) -> None:
        self._backend_fns[name] = fn
        if name not in self._disabled:
            self._operator.kernels[name] = fn

    def register_kernel(
        self, device_types: DeviceTypes, fn: Callable[..., Any] | None = None, /
    ) -> Any:
        """Give the operator a kernel for some types of devices, all if None; also a decorator."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            names = _device_names(device_types)
            self._check_devices(names)
            for name in names:
                self._set_kernel(name, function)
            return function

        return register if fn is None else register(fn)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Within a ``with`` block, use the kernel for a device or the function first given."""
        name = device(device_type).type
        was_enabled = name not in self._disabled
        if enabled == was_enabled or (not enabled and name not in self._backend_fns):
            state = "enabled" if was_enabled else "disabled"
            warnings.warn(
                f"set_kernel_enabled({device_type!r}, {enabled}) of {self!r} changes nothing: "
                + (
                    f"the kernel is {state}"
                    if name in self._backend_fns
                    else "there is no such kernel"
                ),
                stacklevel=3,
            )
            yield
            return
        self._switch(name, enabled)
        try:
            yield
        finally:
            self._switch(name, not enabled)

    def _switch(self, name: str, enabled: bool) -> None:
        if enabled:
            self._disabled.discard(name)
            self._operator.kernels[name] = self._backend_fns[name]
        else:
            self._disabled.add(name)
            self._operator.kernels[name] = self._init_fn

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Say what the operator returns for meta tensors: shapes and dtypes, without data."""
        self._operator.kernels["meta"] = fn
        return fn

    def register_autograd(
        self,
        backward: Callable[..., Any],
        /,
        *,
        setup_context: Callable[..., Any] | None = None,
    ) -> None:
        """Give the operator a derivative.

        ``setup_context(ctx, inputs, output)`` keeps what is needed; an operator that has
        keyword-only arguments also gets ``keyword_only_inputs``, a dictionary. Defaults are filled
        in. ``backward(ctx, *grads)`` returns a gradient per positional argument, None for what is
        no tensor, a list for a list of tensors.
        """
        set_autograd(self._operator, repr(self), backward, setup_context)

    def register_jvp(self, jvp: Callable[..., Any], /) -> Callable[..., Any]:
        """Give the operator a forward rule: ``jvp(ctx, *tangents)`` returns those of the results.

        The tangents are in the structure of the positional arguments, None for what is no tensor.
        `ctx` was filled by the `setup_context` of `register_autograd`.
        """
        self._operator.jvp = jvp
        return jvp

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Any:
        """Say what the operator does to batched tensors; also a decorator.

        ``func(info, in_dims, *args, **kwargs)`` returns the results and their batch dimensions.
        """

        def register(function: Callable[..., Any]) -> None:
            self._operator.vmap = function

        return register if func is None else register(func)

    def register_torch_dispatch(
        self, torch_dispatch_class: type, fn: Callable[..., Any] | None = None, /
    ) -> Any:
        """Say what a dispatch mode or a subclass of Tensor makes of the operator; also a decorator.

        ``fn(mode_or_class, func, types, args, kwargs)`` is called in place of the
        ``__torch_dispatch__`` of that very class.
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            register_rule(self._operator, torch_dispatch_class, function, replace=True)
            return function

        return register if fn is None else register(fn)


def set_autograd(
    operator: CustomOperator,
    shown: str,
    backward: Callable[..., Any],
    setup_context: Callable[..., Any] | None,
) -> None:
    """Register a formula for a functional operator."""
    schema = operator._schema
    if any(a.alias_info is not None for a in (*schema.arguments, *schema.returns)):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {shown} with schema "
            f"{schema}. Write a functional operator and register a formula for that."
        )
    if any(a.kwarg_only and a.type.base == "Tensor" for a in schema.arguments):
        raise NotImplementedError(
            f"register_autograd with kwarg-only Tensor args: tensors must not be keyword-only. "
            f"Got: {schema}"
        )
    operator.records = True
    operator.backward = backward
    operator.setup_context = setup_context
