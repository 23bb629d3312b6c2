"""Operations whose inside autograd does not see: custom Functions and checkpointed regions."""

import functools
import importlib

from random_programs.machine import broadcasts, fits_into, has_edge, is_expanded, operation


@functools.cache
def functions_of(lib):
    """Custom Functions that use one feature each, by what they take."""
    Function = lib.autograd.Function

    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * g * x

    class Exponential(Function):
        @staticmethod
        def forward(x):
            return (x * 0.5).exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            (out,) = ctx.saved_tensors
            return 0.5 * g * out

    class WithRounded(Function):
        @staticmethod
        def forward(ctx, x):
            rounded = x.sign()
            ctx.mark_non_differentiable(rounded)
            return x * 3, rounded

        @staticmethod
        def backward(ctx, g, _):
            return g * 3

    class WithInput(Function):
        @staticmethod
        def forward(ctx, x):
            return x, x.sin()

        @staticmethod
        def backward(ctx, g, h):
            return g + h * 0.5

    class Sparing(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 4

        @staticmethod
        def backward(ctx, g, h):
            if g is None or h is None:
                return None if h is None else h * 7
            return g * 2 + h * 4

    class Whole(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Doubled(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Multiplied(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x.clone(), y)
            ctx.mark_dirty(x)
            return x.mul_(y)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, (g * x).sum_to_size(y.shape) if ctx.needs_input_grad[1] else None

    class Product(Function):
        @staticmethod
        def forward(ctx, x, y, factor):
            ctx.save_for_backward(x, y)
            ctx.factor = factor
            return x * y * factor

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            g = g * ctx.factor
            wanted = ctx.needs_input_grad
            return g * y if wanted[0] else None, g * x if wanted[1] else None, None

    one = (Square, Exponential, WithRounded, WithInput, Sparing, Whole)
    return one, (Doubled, Multiplied), Product


@operation
def customized(m, a, b, c):
    one, _, product = functions_of(m.lib)
    x, y = m.operand(a), m.operand(b)
    if c % 7 == 6:
        return [product.apply(x, y, 0.5)] if broadcasts(x, y) else None
    made = one[c % 7].apply(x)
    return list(made) if isinstance(made, tuple) else [made]


@operation
def customized_in_place(m, a, b, c):
    doubled, multiplied = functions_of(m.lib)[1]
    x, y = m.target(a), m.operand(b)
    if is_expanded(x) or not has_edge(x):
        return
    if x.retains_grad and x._is_view():
        return  # PyTorch drops the retained gradient if it refuses the call
    if c % 2:
        doubled.apply(x)
    elif fits_into(x, y):
        multiplied.apply(x, y)


@operation
def checkpointed(m, a, b, c):
    checkpoint = importlib.import_module(m.lib.__name__ + ".utils.checkpoint").checkpoint
    x, y = m.operand(a), m.operand(b)
    if not broadcasts(x, y):
        return None

    def inner(x, y):
        return (x * y).tanh() * x

    def region(x, y):
        z = inner(x, y).sin()
        z = checkpoint(inner, z, y, use_reentrant=False) if c % 3 == 0 else z
        return z.mul_(m.constant(2)) if c % 2 else z

    return [checkpoint(region, x, y, use_reentrant=False)]
