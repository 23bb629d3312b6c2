"""What it takes to declare a function that makes tensors: schemas, and a kernel.

A kernel is given a `Blank`, which knows where the new array goes, and the function's own arguments;
it returns the array. The kind of maker does the rest, once for all of them: sizes, types, devices,
`out=`, `requires_grad=`, classes of tensors, transforms and traces.

- `Maker` has arguments of its own: ``arange(0, 3)``
- `Sized` has a shape: ``zeros(2, 3)``; in `SizedFirst` and `SizedLast` it is one argument of
  several: ``full((2, 3), 1)``, ``randint(5, (2, 3))``
- `Like` takes everything from a tensor: ``zeros_like(t)``
- `New` takes type and device from a tensor: ``t.new_zeros(2, 3)``

`Drawing` in front of a kind says that the kernel draws random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ..backends.allocation import fill, new_array, new_array_like
from ..backends.casting import dtype_of
from ..backends.placement import of_array, transfer
from ..core import dtypes
from ..core.arrays import alive, made_here
from ..core.devices import CPU, as_device
from ..core.layouts import check_options
from ..core.numbers import check_number
from ..core.size import parse_size, sequence_size
from ..core.state import thread_state
from ..core.tensor import Tensor, wrap
from ..dispatch.effects import Effect
from ..tape.leaves import require_grad
from .arguments import check_tensor, first_argument, write_out
from .drawing import DRAWS, drawn_here, noted, sizes_drawn

OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
LIKE = f"{OPTIONS}, MemoryFormat? memory_format=None"
GENERATOR = "Generator? generator=None"

_TAKES_ANY_NUMBER = 4  # inspect.CO_VARARGS, which would cost the import of inspect


class Blank:
    """Where a new array goes: the function that makes it, `out`, and what was asked for."""

    __slots__ = ("function", "out", "asked_dtype", "asked_device", "batch_sizes", "shape")

    def __init__(
        self, function: str, out: Tensor | None, dtype: Any, device: Any, shape: tuple[int, ...]
    ) -> None:
        self.function = function
        self.out = out
        self.asked_dtype = dtype
        self.asked_device = device
        self.batch_sizes: tuple[int, ...] = ()
        self.shape = shape

    def dtype(self, default: dtypes.dtype | None = None) -> dtypes.dtype:
        """The type of the result: that of `out`, or the one asked for, or `default`."""
        kind = None if self.asked_dtype is None else dtypes.as_dtype(self.asked_dtype)
        if self.out is not None:
            given = dtype_of(self.out)
            if kind is not None and kind is not given:
                raise RuntimeError(
                    f"dtype {kind.scalar_name} does not match dtype of out parameter "
                    f"({given.scalar_name})"
                )
            return given
        return kind or default or dtypes.get_default_dtype()

    def place(self) -> Any:
        """The device of the result."""
        return as_device(self.asked_device) if self.out is None else of_array(self.out.array)

    def empty(self, default: dtypes.dtype | None = None) -> Any:
        """An uninitialised array, with the batch sizes that a draw has in front."""
        return new_array((*self.batch_sizes, *self.shape), self.dtype(default), self.place())

    def constant(self, value: Any) -> Any:
        """An array of 0 or 1."""
        place = as_device(self.asked_device) if self.out is None else of_array(self.out.array)
        if value == 0 and place is CPU:
            return np.zeros(self.shape, self.dtype().numpy)
        return fill(new_array(self.shape, self.dtype(), place), value)

    def filled(self, value: Any, default: dtypes.dtype | None = None) -> Any:
        """An array of one value, which must fit its type."""
        array = self.empty(default)
        return fill(array, check_number(value, dtypes.from_numpy(array.dtype)))

    def moved(self, array: Any) -> Any:
        """An array on the device of the result; numbers in a row fill what has room for them."""
        out = self.out
        if out is not None and array.ndim == 1 and array.size == out.array.size:
            array = array.reshape(out.array.shape)
        return transfer(array, self.place())


class NewBlank(Blank):
    """A blank in the type and on the device of a tensor."""

    __slots__ = ("like",)
    like: Tensor

    def dtype(self, default: dtypes.dtype | None = None) -> dtypes.dtype:
        asked = self.asked_dtype
        return dtype_of(self.like) if asked is None else dtypes.as_dtype(asked)

    def place(self) -> Any:
        asked = self.asked_device
        return of_array(self.like.array) if asked is None else as_device(asked)

    def constant(self, value: Any) -> Any:
        return fill(self.empty(), value)


class LikeBlank(NewBlank):
    """A blank of the shape, type, device and memory order of a tensor."""

    __slots__ = ("memory_format",)
    memory_format: Any

    def empty(self, default: dtypes.dtype | None = None) -> Any:
        """An uninitialised array in the order of the tensor, unless another is asked for."""
        source = alive(self.like).array
        return new_array_like(source, self.dtype(), self.place(), self.memory_format)


class Maker(Effect):
    """Makes tensors by a kernel with arguments of its own: ``kernel(blank, *args) -> array``."""

    extras: dict[str, Any] = {"out": None, "requires_grad": False}
    #: Whether the kernel draws random numbers.
    draws = False

    def __init__(
        self,
        name: str,
        kernel: Callable[..., Any],
        *schemas: str,
        without: tuple[str, ...] = (),
        warns_of_resizing: bool = False,
        doc: str | None = None,
    ) -> None:
        Effect.__init__(self, name, schemas, doc or kernel.__doc__)
        self.kernel: Any = kernel
        self.without = without  # what callers cannot give, though others of the kind take it
        self.warns_of_resizing = warns_of_resizing
        if without:
            self.extras = {key: self.extras[key] for key in self.extras if key not in without}

    def __call__(
        self,
        *args: Any,
        out: Tensor | None = None,
        dtype: dtypes.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        **arguments: Any,
    ) -> Tensor:
        shape, rest = self.split(args, arguments)
        if layout is not None or pin_memory:
            check_options(layout, pin_memory)
        if self.without:
            self.refuse(out, requires_grad)
        blank = Blank(self.name, out, dtype, device, shape)
        levels = thread_state().levels
        if levels and self.draws:
            blank.batch_sizes = sizes_drawn(out)
        array = self.run(blank, args, rest, arguments) if arguments or rest else self.kernel(blank)
        if out is None:
            made = wrap(array)
            if levels:
                made = drawn_here(made) if self.draws else made_here(made)
        elif array is out.array:
            made = out
        else:
            made = write_out(self.name, out, array, self.warns_of_resizing)
        return made if requires_grad is False else require_grad(made, requires_grad)

    def split(self, args: tuple, arguments: dict[str, Any]) -> tuple[tuple[int, ...], tuple]:
        """The shape among the arguments of a call, and the other ones by position."""
        return (), args

    def refuse(self, out: Tensor | None, requires_grad: bool) -> None:
        """Refuse what the function does not take."""
        for name in self.without:
            if requires_grad if name == "requires_grad" else out is not None:
                raise TypeError(f"{self.name}() got an unexpected keyword argument '{name}'")

    def run(self, blank: Blank, args: tuple, rest: tuple, arguments: dict[str, Any]) -> Any:
        """The kernel's array. If it refuses a call for its many arguments, count the caller's."""
        try:
            return self.kernel(blank, *rest, **arguments)
        except TypeError:
            code, defaults = self.kernel.__code__, self.kernel.__defaults__ or ()
            most = code.co_argcount - 1
            if len(rest) <= most or code.co_flags & _TAKES_ANY_NUMBER:
                raise
            before = len(args) - len(rest)
            least, most = before + most - len(defaults), before + most
            takes = str(most) if least == most else f"from {least} to {most}"
            raise TypeError(
                f"{self.name}() takes {takes} positional argument{'s' * (most != 1)} but "
                f"{len(args)} were given"
            ) from None


class Sized(Maker):
    """Makes tensors of a shape, given as ints or as one sequence: ``kernel(blank) -> array``."""

    sizes_from = 0

    def split(self, args: tuple, arguments: dict[str, Any]) -> tuple[tuple[int, ...], tuple]:
        size = arguments.pop("size", None) if arguments else None
        return parse_size(self.name, args, size), ()


class SizedFirst(Maker):
    """Makes tensors of a shape, which is the first argument of several."""

    def split(self, args: tuple, arguments: dict[str, Any]) -> tuple[tuple[int, ...], tuple]:
        size, rest = first_argument(self.name, "size", args, arguments)
        return sequence_size(self.name, size), rest


class SizedLast(Maker):
    """Makes tensors of a shape, which is the last of the arguments given by position."""

    def split(self, args: tuple, arguments: dict[str, Any]) -> tuple[tuple[int, ...], tuple]:
        size = arguments.pop("size", None)
        if size is None:
            if not args or len(args) < 2 and arguments.get("high") is None:
                raise TypeError(f"{self.name}() missing required argument: 'size'")
            size, args = args[-1], args[:-1]
        return sequence_size(self.name, size), args


class Like(Maker):
    """Makes tensors with the shape, type, device and memory order of another."""

    extras: dict[str, Any] = {"requires_grad": False}
    #: What errors call the other tensor.
    source = "input"

    def __call__(
        self,
        *args: Any,
        dtype: dtypes.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        **arguments: Any,
    ) -> Tensor:
        if args and not arguments:
            like, given = args[0], args[1:]
        else:
            like, given = first_argument(self.name, self.source, args, arguments)
        if not isinstance(like, Tensor):
            check_tensor(self.name, self.source, like)
        shape, rest = self.split(given, arguments)
        if layout is not None or pin_memory:
            check_options(layout, pin_memory)
        made: Any = NotImplemented
        levels = thread_state().levels
        if type(like) is not Tensor:
            made = self.handled_by_class(
                like, *shape, *rest, dtype=dtype, layout=layout, device=device, **arguments
            )
        if made is NotImplemented and levels:
            options = {"dtype": dtype, "device": device, **arguments}
            below = levels[-1].drawn_like if self.draws else levels[-1].made_like
            made = below(lambda value, *shape: self(value, *shape, *rest, **options), like, *shape)
        elif made is NotImplemented:
            blank = self.blank(like, shape, dtype, device, arguments)
            array = (
                self.run(blank, args, rest, arguments) if arguments or rest else self.kernel(blank)
            )
            made = wrap(array)
        return made if requires_grad is False else require_grad(made, requires_grad)

    def blank(
        self, like: Tensor, shape: tuple, dtype: Any, device: Any, arguments: dict[str, Any]
    ) -> Blank:
        """The blank that the kernel is given."""
        blank = LikeBlank(self.name, None, dtype, device, ())
        blank.like = like
        blank.memory_format = arguments.pop("memory_format", None) if arguments else None
        return blank


class New(Like):
    """Makes tensors of a shape in the type and on the device of another."""

    source = "self"
    sizes_from = 1

    def split(self, args: tuple, arguments: dict[str, Any]) -> tuple[tuple, tuple]:
        size = arguments.pop("size", None) if arguments else None
        return (list(parse_size(self.name, args, size)),), ()

    def blank(
        self, like: Tensor, shape: tuple, dtype: Any, device: Any, arguments: dict[str, Any]
    ) -> Blank:
        blank = NewBlank(self.name, None, dtype, device, shape[0])
        blank.like = like
        return blank


class NewFirst(New):
    """Makes tensors of a shape, which is one argument of several, in the type of another tensor."""

    sizes_from = -1

    def split(self, args: tuple, arguments: dict[str, Any]) -> tuple[tuple, tuple]:
        size, rest = first_argument(self.name, "size", args, arguments)
        return (list(parse_size(self.name, (), size)),), rest


class Drawing(Maker):
    """A kind of maker that draws: each level says what becomes of it, a trace notes the call."""

    draws = True

    def __init__(self, name: str, kernel: Callable[..., Any], *schemas: str, **facts: Any) -> None:
        super().__init__(name, kernel, *schemas, **facts)
        #: Draws now, whatever is traced.
        self.draw = DRAWS[name] = super().__call__

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        node = noted(self.name, args, kwargs) if thread_state().levels else NotImplemented
        return self.draw(*args, **kwargs) if node is NotImplemented else node


class SizedDraw(Drawing, Sized):
    """Draws tensors of a shape; `quick` fills a new array of the default type, with no options."""

    def __init__(
        self,
        name: str,
        kernel: Callable[..., Any],
        *schemas: str,
        quick: Callable[[Any], None] | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(name, kernel, *schemas, **facts)
        self.quick = quick

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        quick = None if kwargs or thread_state().levels else self.quick
        kind = dtypes.get_default_dtype()
        if quick is not None and as_device(None) is CPU and kind.itemsize >= 4:
            plain = len(args) == 1 and type(args[0]) is int and args[0] >= 0
            array = np.empty(args if plain else parse_size(self.name, args), kind.numpy)
            quick(array)
            return wrap(array)
        return super().__call__(*args, **kwargs)


class SizedFirstDraw(Drawing, SizedFirst):
    """Draws tensors of a shape, which is the first argument."""


class SizedLastDraw(Drawing, SizedLast):
    """Draws tensors of a shape, which is the last argument."""


class LikeDraw(Drawing, Like):
    """Draws tensors like another."""


# Declarations ------------------------------------------------------------------------------------


def maker(
    *schemas: str, kind: type[Maker] = Maker, **facts: Any
) -> Callable[[Callable[..., Any]], Maker]:
    """Decorates a kernel: the function of its name, declared by the schemas of its overloads."""
    return lambda kernel: kind(kernel.__name__, kernel, *schemas, **facts)


def variant(
    source: Maker, name: str, kind: type[Maker], *schemas: str, doc: str
) -> Maker:
    """A function of another kind by the kernel of `source`, which errors call by the new name."""
    kernel = source.kernel
    same = FunctionType(
        kernel.__code__, kernel.__globals__, name, kernel.__defaults__, kernel.__closure__
    )
    same.__kwdefaults__ = kernel.__kwdefaults__
    same.__qualname__ = name
    return kind(name, same, *schemas, doc=doc)
