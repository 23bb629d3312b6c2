"""What is declared of an operator, and how its kernel runs on arrays.

Promotion, 16-bit floats and floating-point warnings are dealt with here for NumPy's arrays, and in
`backends/running.py` for others; autograd and transforms stand above, in `operator.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from ..backends.backend import BY_CLASS
from ..backends.layout import call_in_order, copied, laid_out, with_steps
from ..backends.numpy import quiet
from ..core.classes import classes
from ..core.dtypes import from_numpy
from ..core.errors import broadcast_error
from ..core.loading import load
from ..core.ndarrays import ndarrays
from ..core.tensor import Tensor
from .base_operator import BaseOperator
from .schema import REQUIRED

_classes = classes
_ndarrays = ndarrays
_ndarray = np.ndarray
_backends = BY_CLASS
_LARGEST, _INFINITE = 3.4028234663852886e38, float("inf")  # of float32
_quiet_set, _quiet_reset, _quiet_ignore = quiet.set, quiet.reset, quiet.ignore


@cache
def _other_way() -> Any:
    """What runs kernels on arrays of other classes, which not every program has."""
    return load("backends.running").run_on


class Declaration(BaseOperator):
    """Everything known about an operator; `Operator` adds the calls."""

    def __init__(self, name: str, schema: Any, family: str, kernel: Callable) -> None:
        BaseOperator.__init__(self, name, schema)
        self.finishes = True
        _classes.name_function(self, name)
        self.family = family
        self.kernel = kernel
        self.ufunc: Any = None
        self.dtype_rule: Any = None
        self.native_code = -1
        self.vector_loop: Any = None
        self.outputs = len(schema.returns)
        self.broadcasts = False
        self.is_view = False
        self.widens = False
        self.moves_operands = False  # from other devices to that of the first
        arguments = schema.arguments
        self.arity = len(arguments)
        self.tensor_positions = tuple(
            i for i, a in enumerate(arguments) if a.type in ("Tensor", "Tensor?")
        )
        self.list_positions = tuple(
            i for i, a in enumerate(arguments) if a.type in ("Tensor[]", "Tensor?[]")
        )
        self.operands = len(self.tensor_positions)
        self.tail_has_defaults = self.tensor_positions == tuple(range(self.operands)) and all(
            a.default is not REQUIRED for a in arguments[self.operands :]
        )
        self.tail = tuple(a.default for a in arguments[len(self.tensor_positions) :])
        self.grad_positions: tuple[int, ...] = ()
        self.nondifferentiable_outputs: tuple[int, ...] = ()
        self.takes_undefined = False
        self.rules: dict[str, Any] = {}
        self.loops: dict[str, int] = {}
        self.vector_loops: dict[str, Any] = {}
        self.jvp_rule: Any = None
        self.meta_rule: Any = None
        #: The rule for batches, or where it is found: "transforms.batching.rules.elementwise".
        self.batch: Any = None
        self.batches_by_loop = False
        self.plans: dict = {}
        self.small_plans: list = [None] * 4
        self.node_name = name.title().replace("_", "") + "Backward0"
        self.namer: Any = None
        self.ordering: Any = None
        self.refuses = ""
        self.refusal = ""
        self.guarded = True

    @property
    def functional(self) -> Any:
        """The operator that computes what this one returns or writes."""
        return self

    @property
    def batch_rule(self) -> Any:
        """What becomes of a batch of examples, see `transforms/batching`; None: a loop."""
        rule = self.batch
        if type(rule) is str:
            module, _, name = rule.rpartition(".")
            rule = self.batch = getattr(load(module), name)
        return rule

    def run_kernel(self, args: tuple) -> Any:
        """The kernel on arrays, with promotion, quiet floating point and array results.

        This is the short way for NumPy's arrays; `run_on` is the one for every other class.
        """
        if self.vector_loop is not None:
            out = self._run_vector_loop(args)
            if out is not None:
                return out
        for position in self.tensor_positions:
            value = args[position]
            if type(value) is not _ndarray and _is_array(value):
                return _other_way()(value, self, args)
        if self.list_positions:
            for position in self.list_positions:
                for value in args[position]:
                    if type(value) is not _ndarray and _is_array(value):
                        return _other_way()(value, self, args)
        if self.is_view:
            if _ndarrays.is_empty(args[0]):
                return self.kernel(np, with_steps(args[0]), *args[1:])
            return self.kernel(np, *args)
        if not self.guarded:
            return np.asanyarray(self.kernel(np, *args))
        token = _quiet_set(_quiet_ignore)
        try:
            if self.dtype_rule is not None:
                if not alike_floats(args, self.operands):
                    args = self.promoted(args)
                    if _has_half(args):
                        out = _narrow(self._computed(tuple(_widen(args))), args)
                        if self.broadcasts and not _ndarrays.in_row_order(args):
                            return self._in_order(out, args)
                        return out
                elif "f" in self.refuses:
                    self._refuse(args)
                if self.broadcasts and not _ndarrays.in_row_order(args):
                    return self._run_in_order(args)
            elif self.widens and _only_halves(args):
                return _narrow(self.kernel(np, *_widen(args)), args)
            if self.ufunc is not None:
                out = self.ufunc(*args)
            else:
                out = self.kernel(np, *args)
        except ValueError as error:
            if self.broadcasts:
                raise broadcast_error(self.name, args, error) from None
            raise
        finally:
            _quiet_reset(token)
        if isinstance(out, _ndarray):
            return out
        if type(out) is tuple:
            return tuple([np.asanyarray(o) for o in out])
        return out if type(out) is list or _is_array(out) else np.asarray(out)

    def _run_vector_loop(self, args: tuple) -> Any:
        """What a loop in C makes of plain arrays; None if they do not suit it."""
        if self.ordering is not None and not _ndarrays.in_row_order(args):
            return None
        return self.vector_loop.run(args)

    def _computed(self, args: tuple) -> Any:
        """The kernel on promoted arrays, by a loop in C where there is one."""
        out = None if self.vector_loop is None else self._run_vector_loop(args)
        return self.kernel(np, *args) if out is None else out

    def _run_in_order(self, args: tuple) -> Any:
        """An elementwise kernel on operands of which not all are contiguous."""
        operands, rest = args[: self.operands], args[self.operands :]
        if self.ordering is None and self.outputs == 1:
            out = self._run_in_order_of_first(args, operands)
            if out is not None:
                return out
        if self.ufunc is not None:
            function: Any = partial(self.ufunc, order="C")
        elif self.outputs == 1:
            kernel = self.kernel

            def function(*operands: Any) -> Any:
                return kernel(np, *operands, *rest)

        else:
            return self._in_order(self.kernel(np, *args), args)
        return call_in_order(function, operands, self.leading(args))

    def _in_order(self, out: Any, args: tuple) -> Any:
        """Results laid out in memory as the operands are."""
        if type(out) is tuple:
            return tuple([self._in_order(o, args) for o in out])
        return laid_out(np.asarray(out), self.leading(args))

    def _run_in_order_of_first(self, args: tuple, operands: tuple) -> Any:
        """The short way for operands of one shape; None where what they ask for is not as plain."""
        order = _ndarrays.order_of_first(operands)
        if order is None:
            return None
        if not order:
            if self.ufunc is not None:
                return self.ufunc(*args)
            out = self.kernel(np, *args)
            return out if _ndarrays.order_of_first((*operands, out)) == () else None
        if self.ufunc is None:
            return None
        turned = [a.transpose(order) if isinstance(a, _ndarray) else a for a in operands]
        out = self.ufunc(*turned, order="C")
        back = [0] * len(order)
        for place, dim in enumerate(order):
            back[dim] = place
        return out.transpose(back)

    def leading(self, args: tuple) -> tuple:
        """The operands that decide on the order of the result in memory, see `layout.py`."""
        operands = args[: self.operands]
        return operands if self.ordering is None else self.ordering(*operands)

    def _refuse(self, args: tuple, given: tuple = ()) -> None:
        """Raise for dtypes that the operator is not defined for.

        Where it is one of fractions only, numbers among the `given` operands are what is wrong.
        """
        dtype = next(a.dtype for a in args if _is_array(a))
        if dtype.kind in self.refuses:
            if self.refusal and dtype.kind == self.refuses[0]:
                raise RuntimeError(self.refusal)
            name = self.name.lstrip("_")
            if "i" in self.refuses:
                for index, value in enumerate(given[:2]):
                    is_operand = self.schema.arguments[index].type == "Tensor"
                    if is_operand and isinstance(value, (int, float, complex)):
                        raise _number_for_a_tensor(self, index, value, dtype)
            raise NotImplementedError(
                f"\"{name}_cpu\" not implemented for '{from_numpy(dtype).scalar_name}': "
                f"{name}() is not supported for {dtype} tensors"
            )

    def promoted(self, args: tuple) -> tuple:
        """The arguments in the dtypes that the kernel takes, or an error for those it does not."""
        given = args
        args = self.dtype_rule(args, self.operands)
        if self.refuses:
            self._refuse(args, given)
        return args

    def compute(self, xp: Any, args: tuple) -> Any:
        """The kernel on promoted arrays of any class; 16-bit floats compute in float32."""
        if _has_half(args) if self.dtype_rule is not None else self.widens and _only_halves(args):
            return _narrow(self.kernel(xp, *_widen(args)), args)
        return self.kernel(xp, *args)

    def compute_each(self, xp: Any, *args: Any) -> Any:
        """What `compute` does, called as a kernel is."""
        return self.compute(xp, args)


def _number_for_a_tensor(operator: Any, index: int, value: Any, dtype: Any) -> TypeError:
    """For a number beside tensors of whole numbers, which the operator is not defined for."""
    argument = operator.schema.arguments[index].name
    return TypeError(
        f"{operator.name}(): argument '{'input' if argument == 'self' else argument}' (position "
        f"{index + 1}) must be Tensor, not {type(value).__name__}, and {operator.name}() is not "
        f"supported for {dtype} tensors"
    )


def _is_array(value: Any) -> bool:
    return isinstance(value, _ndarray) or type(value) in _backends


# What kernels get in place of the arguments of a call ---------------------------------------------


def only_tensors(args: tuple, count: int) -> bool:
    """Whether `args` are exactly `count` tensors."""
    if len(args) != count:
        return False
    for value in args:  # noqa: SIM110 - a generator would be made for every call
        if not isinstance(value, Tensor):
            return False
    return True


def is_foreign(array: Any) -> bool:
    """Whether an operand is an array that NumPy's kernels do not serve."""
    return type(array) is not _ndarray and (
        isinstance(array, _ndarray) or type(array) in _backends
    )


def any_foreign(args: tuple) -> bool:
    """Whether any tensor among the arguments has such an array."""
    for value in args:
        if isinstance(value, Tensor):
            t = value
            if type(t.array) is not _ndarray:
                return True
        elif type(value) is list:
            for item in value:
                if isinstance(item, Tensor):
                    t = item
                    if type(t.array) is not _ndarray:
                        return True
    return False


def arrays_of(args: tuple) -> tuple:
    """The arguments with every tensor replaced by its array, in lists too."""
    out = []
    for a in args:
        if isinstance(a, Tensor):
            t = a
            out.append(t.array)
        elif type(a) is list:
            out.append([i.array if isinstance(i, Tensor) else i for i in a])
        else:
            out.append(a)
    return tuple(out)


def plain_arrays(args: tuple) -> tuple | None:
    """What `arrays_of` gives, None if an array is not NumPy's."""
    out: list[Any] = []
    for a in args:
        if isinstance(a, Tensor):
            t = a
            if type(t.array) is not _ndarray:
                return None
            out.append(t.array)
        elif type(a) is list:
            inner: list[Any] = []
            for i in a:
                if isinstance(i, Tensor):
                    t = i
                    if type(t.array) is not _ndarray:
                        return None
                    inner.append(t.array)
                else:
                    inner.append(i)
            out.append(inner)
        else:
            out.append(a)
    return tuple(out)


# Types of operands --------------------------------------------------------------------------------


def alike_floats(arrays: tuple, count: int) -> bool:
    """Whether nothing needs converting: operands of one dtype, float32 or float64, and numbers."""
    dtype = None
    for i in range(count):
        a = arrays[i]
        if type(a) is _ndarray:
            if dtype is None:
                dtype = a.dtype
                if not _ndarrays.is_real_float(a):
                    return False
            elif a.dtype is not dtype:
                return False
        elif type(a) is not float and type(a) is not int:
            return False
        elif (a > _LARGEST or a < -_LARGEST) and a != _INFINITE and a != -_INFINITE:
            return False  # some operators refuse numbers that a tensor cannot hold
    return dtype is not None


def _has_half(args: tuple) -> bool:
    for a in args:  # noqa: SIM110 - a generator would be made for every call
        if _is_array(a) and _ndarrays.is_half(a):
            return True
    return False


def _only_halves(args: tuple) -> bool:
    """Whether the floats among the operands are 16-bit ones; other mixtures are the kernel's."""
    found = False
    for a in args:
        if _is_array(a):
            if _ndarrays.is_half(a):
                found = True
            elif _ndarrays.is_real_float(a):
                return False
    return found


def _widen(args: tuple) -> list:
    """The 16-bit floats as float32, in which the kernels compute."""
    return [[_widened(i) for i in a] if type(a) is list else _widened(a) for a in args]


def _widened(a: Any) -> Any:
    if _is_array(a) and _ndarrays.is_half(a):
        return copied(a, np.float32)
    return a


def _narrow(out: Any, args: tuple) -> Any:
    """Results back to the type of the first 16-bit operand."""
    half = next(a.dtype for a in args if _is_array(a) and _ndarrays.is_half(a))
    if type(out) is tuple:
        return tuple([_narrow(o, args) for o in out])
    if not _is_array(out):
        out = np.asarray(out)
    return out.astype(half) if out.dtype == np.float32 else out
