"""Products with a Jacobian: `vjp`, `jvp` and `linearize`."""

import importlib
import re
import threading

import pytest

import wengert


def double(lib, values):
    return lib.tensor(values, dtype=lib.float64)


class TestVjp:
    def test_value_and_product(self, lib):
        x = lib.tensor([1.0, 2.0, 3.0])
        value, pull_back = lib.func.vjp(lambda x: x * x, x)
        assert value.tolist() == [1.0, 4.0, 9.0]
        products = pull_back(lib.tensor([1.0, 0.0, 2.0]))
        assert type(products) is tuple and len(products) == 1
        assert products[0].tolist() == [2.0, 0.0, 12.0]

    @pytest.mark.parametrize(
        "f",
        [
            lambda lib, x: x.long(),
            lambda lib, x: x > 0,
            lambda lib, x: x.argmax(),
            lambda lib, x: (x * x, {"i": x.int()}),
            lambda lib, x: lib.ones(2, dtype=lib.int64),
        ],
    )
    def test_outputs_must_be_differentiable(self, lib, f):
        message = "All outputs of f must be floating-point or complex Tensors, got Tensor with dt"
        x = lib.tensor([1.0, 2.0])
        with pytest.raises(RuntimeError, match=message):
            lib.func.vjp(lambda x: f(lib, x), x)
        with pytest.raises(RuntimeError, match=message):
            lib.func.jacrev(lambda x: f(lib, x))(x)
        _, _, aux = lib.func.vjp(lambda x: (x, f(lib, x)), x, has_aux=True)
        assert aux is not None

    def test_may_be_called_many_times(self, lib):
        _, pull_back = lib.func.vjp(lib.exp, lib.zeros(2))
        for factor in (1.0, 2.0, 3.0):
            assert pull_back(lib.full((2,), factor))[0].tolist() == [factor, factor]

    def test_trees(self, lib):
        x, y = lib.tensor(2.0), {"a": lib.tensor(3.0)}
        value, pull_back = lib.func.vjp(lambda x, y: {"p": x * y["a"], "s": [x + y["a"]]}, x, y)
        assert (value["p"].item(), value["s"][0].item()) == (6.0, 5.0)
        dx, dy = pull_back({"p": lib.tensor(1.0), "s": [lib.tensor(10.0)]})
        assert (dx.item(), dy["a"].item()) == (13.0, 12.0)

    def test_aux(self, lib):
        value, pull_back, aux = lib.func.vjp(
            lambda x: (x * 2, [x + 1]), lib.tensor(3.0), has_aux=True
        )
        assert (value.item(), pull_back(lib.tensor(5.0))[0].item()) == (6.0, 10.0)
        assert aux[0].item() == 4.0

    def test_outputs_that_do_not_depend_on_the_input(self, lib):
        constant = lib.ones(2)
        value, pull_back = lib.func.vjp(lambda x: (x * 2, constant), lib.tensor(3.0))
        assert pull_back((lib.tensor(1.0), lib.ones(2)))[0].item() == 2.0
        _, pull_back = lib.func.vjp(lambda x: constant, lib.ones(3))
        assert pull_back(lib.ones(2))[0].tolist() == [0.0, 0.0, 0.0]

    def test_cotangents_must_have_the_structure_of_the_outputs(self, lib):
        _, pull_back = lib.func.vjp(lambda x: (x, x), lib.tensor(3.0))
        with pytest.raises(RuntimeError, match="Expected pytree structure of cotangents to be"):
            pull_back(lib.tensor(1.0))

    def test_outputs_must_be_tensors(self, lib):
        with pytest.raises(RuntimeError, match="has non-empty output"):
            lib.func.vjp(lambda x: (), lib.ones(2))
        with pytest.raises(RuntimeError, match=re.escape("expected f(*primals) to return only")):
            lib.func.vjp(lambda x: (x, 3), lib.ones(2))

    def test_product_is_differentiable_in_primal_and_cotangent(self, lib):
        x = lib.tensor(2.0, requires_grad=True)
        v = lib.tensor(5.0, requires_grad=True)
        _, pull_back = lib.func.vjp(lambda x: x**3, x)
        (product,) = pull_back(v)
        dx, dv = lib.autograd.grad(product, (x, v))
        assert (product.item(), dx.item(), dv.item()) == (60.0, 60.0, 12.0)

    def test_product_inside_transforms_that_began_later(self, lib):
        _, pull_back = lib.func.vjp(lambda x: x**3, lib.tensor([1.0, 2.0]))
        basis = lib.eye(2)
        rows = lib.func.vmap(lambda v: pull_back(v)[0])(basis)
        assert rows.tolist() == [[3.0, 0.0], [0.0, 12.0]]
        slope = lib.func.grad(lambda v: pull_back(v)[0].sum())(lib.ones(2))
        assert slope.tolist() == [3.0, 12.0]
        _, pushed = lib.func.jvp(lambda v: pull_back(v)[0], (lib.ones(2),), (lib.ones(2),))
        assert pushed.tolist() == [3.0, 12.0]


def test_vjp_of_one_call_in_several_threads():
    x = wengert.linspace(0.0, 1.0, 50)
    _, pull_back = wengert.func.vjp(lambda x: x.sin().exp(), x)
    (expected,) = pull_back(wengert.ones(50))
    wrong = []

    def work(factor):
        for _ in range(20):
            (found,) = pull_back(wengert.full((50,), factor))
            if not wengert.allclose(found, expected * factor):
                wrong.append(factor)

    threads = [threading.Thread(target=work, args=(k + 1.0,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


class TestJvp:
    def test_value_and_product(self, lib):
        x = lib.tensor([1.0, 2.0])
        value, product = lib.func.jvp(lambda x: x * x, (x,), (lib.tensor([1.0, 10.0]),))
        assert value.tolist() == [1.0, 4.0]
        assert product.tolist() == [2.0, 40.0]

    def test_trees(self, lib):
        primals = (lib.tensor(2.0), {"a": lib.tensor(3.0)})
        tangents = (lib.tensor(1.0), {"a": lib.tensor(10.0)})
        value, product = lib.func.jvp(
            lambda x, y: {"p": x * y["a"], "s": [x + y["a"]]}, primals, tangents
        )
        assert (value["p"].item(), value["s"][0].item()) == (6.0, 5.0)
        assert (product["p"].item(), product["s"][0].item()) == (23.0, 11.0)

    def test_aux(self, lib):
        x = lib.tensor(3.0)
        value, product, aux = lib.func.jvp(lambda x: (x * 2, x + 1), (x,), (x,), has_aux=True)
        assert (value.item(), product.item(), aux.item()) == (6.0, 6.0, 4.0)

    def test_independent_outputs(self, lib):
        x, constant = lib.ones(2), lib.ones(3)
        _, products = lib.func.jvp(lambda x: (x * 2, constant), (x,), (x,))
        assert products[1].tolist() == [0.0, 0.0, 0.0]
        with pytest.raises(RuntimeError, match="is independent of"):
            lib.func.jvp(lambda x: constant, (x,), (x,), strict=True)

    @pytest.mark.parametrize(
        ("primals", "tangents", "message"),
        [
            (lambda x: x, lambda x: x, "Expected primals to be a tuple"),
            (lambda x: (x, x), lambda x: (x,), "have the same python"),
            (lambda x: (), lambda x: (), "to contain at least one Tensor"),
            (lambda x: (2.0,), lambda x: (x,), "primals to only contain Tensors"),
            (lambda x: (x,), lambda x: (2.0,), "tangents to only contain Tensors"),
        ],
    )
    def test_arguments_are_checked(self, lib, primals, tangents, message):
        x = lib.ones(2)
        with pytest.raises(RuntimeError, match=message):
            lib.func.jvp(lambda x: x, primals(x), tangents(x))

    def test_tangent_must_fit(self, lib):
        with pytest.raises(RuntimeError, match="different size than that of the original"):
            lib.func.jvp(lambda x: x, (lib.ones(2),), (lib.ones(3),))

    def test_result_is_differentiable(self, lib):
        x = lib.tensor(2.0, requires_grad=True)
        t = lib.tensor(5.0, requires_grad=True)
        _, product = lib.func.jvp(lambda x: x**3, (x,), (t,))
        dx, dt = lib.autograd.grad(product, (x, t))
        assert (product.item(), dx.item(), dt.item()) == (60.0, 60.0, 12.0)

    def test_a_dual_level_around(self):
        """A dual level of one's own and `jvp` do not see each other's tangents."""
        fw = wengert.autograd.forward_ad
        one = wengert.tensor(1.0)
        with fw.dual_level():
            x = fw.make_dual(wengert.tensor(2.0), wengert.tensor(10.0))
            value, product = wengert.func.jvp(lambda y: y**3 * x, (one,), (one,))
            assert product.item() == 6.0
            assert fw.unpack_dual(product).tangent.item() == 30.0
            assert fw.unpack_dual(value).tangent.item() == 10.0


class TestJvpOfAPart:
    """A function may look beyond the memory of its argument, where the tangent is zero."""

    @staticmethod
    def part(lib):
        return (lib.arange(6.0) + 1)[:2].detach(), lib.tensor([1.0, 2.0])

    @staticmethod
    def squares(x):
        return x.as_strided((6,), (1,)) ** 2

    def test_values_and_tangents(self, lib):
        x, t = self.part(lib)
        value, product = lib.func.jvp(self.squares, (x,), (t,))
        assert value.tolist() == [1, 4, 9, 16, 25, 36]
        assert product.tolist() == [2, 8, 0, 0, 0, 0]

    def test_a_tangent_with_neighbours(self, lib):
        x, _ = self.part(lib)
        t = lib.arange(4.0)[1:3]
        assert lib.func.jvp(self.squares, (x,), (t,))[1].tolist() == [2, 8, 0, 0, 0, 0]

    @pytest.mark.parametrize("start", [0, 3])
    def test_before_and_behind(self, lib, start):
        x, t = (lib.arange(6.0) + 1)[2:4], lib.ones(2)
        _, product = lib.func.jvp(lambda x: x.as_strided((3,), (1,), start), (x,), (t,))
        assert product.tolist() == [0.0, 0.0, 1.0] if start == 0 else [1.0, 0.0, 0.0]

    @pytest.mark.parametrize(
        ("derivative", "expected"),
        [
            (lambda func, f, x, t: func.jvp(lambda x: func.jvp(f, (x,), (t,))[1], (x,), (t,))[1],
             [2, 8, 0, 0, 0, 0]),
            (lambda func, f, x, t: func.jvp(lambda t: func.jvp(f, (x,), (t,))[1], (t,), (t,))[1],
             [2, 8, 0, 0, 0, 0]),
            (lambda func, f, x, t: func.grad(lambda x: func.jvp(f, (x,), (t,))[1].sum())(x),
             [2, 4]),
            (lambda func, f, x, t: func.grad(lambda t: func.jvp(f, (x,), (t,))[1].sum())(t),
             [2, 4]),
            (lambda func, f, x, t: func.jvp(func.grad(lambda x: f(x).sum()), (x,), (t,))[1],
             [2, 4]),
        ],
        ids=["jvp", "jvp by tangent", "grad", "grad by tangent", "of grad"],
    )  # fmt: skip
    def test_nested(self, lib, derivative, expected):
        assert derivative(lib.func, self.squares, *self.part(lib)).tolist() == expected

    def test_recorded(self, lib):
        x, t = (each.requires_grad_() for each in self.part(lib))
        _, product = lib.func.jvp(self.squares, (x,), (t,))
        found = lib.autograd.grad(product.sum(), (x, t))
        assert [each.tolist() for each in found] == [[2.0, 4.0], [2.0, 4.0]]

    def test_changed_in_place(self, lib):
        def changed(x):
            whole = x.as_strided((6,), (1,))
            whole.mul_(3)
            whole.mul_(whole.clone())
            x.mul_(2)
            return x * 1, whole * 1

        _, (part, whole) = lib.func.jvp(changed, *((each,) for each in self.part(lib)))
        assert whole.tolist() == [36, 144, 0, 0, 0, 0]
        assert part.tolist() == [36, 144]

    def test_a_part_made_inside_and_changed_in_place(self, lib):
        def changed(z):
            x, _ = self.part(lib)
            whole = x.as_strided((6,), (1,))
            whole.mul_(z)
            whole.mul_(z)
            x.mul_(z[:2])
            return whole * 1

        _, product = lib.func.jvp(changed, (lib.ones(6),), (lib.ones(6),))
        assert product.tolist() == [3, 6, 6, 8, 10, 12]

    @pytest.mark.parametrize(
        "derivative",
        [
            lambda lib, f, x, t: lib.func.jacfwd(f)(x),
            lambda lib, f, x, t: lib.vmap(lambda t: lib.func.jvp(f, (x,), (t,)))(lib.eye(2)),
            lambda lib, f, x, t: lib.vmap(lambda x: lib.func.jvp(f, (x,), (t,)))(
                lib.ones(2, 6)[:, :2]
            ),
        ],
        ids=["jacfwd", "tangents", "primals"],
    )
    def test_batches_do_not_lie_so(self, lib, derivative):
        """A batch of tangents has no room for what lies around each of them."""
        x, t = self.part(lib)
        with pytest.raises(RuntimeError, match="storage|memory"):
            derivative(lib, self.squares, x, t)
        assert lib.func.jacrev(self.squares)(x).tolist() == [[2.0, 0], [0, 4], *[[0, 0]] * 4]


class TestLinearize:
    def test_product(self, lib):
        x = double(lib, [0.1, 0.2])
        value, push_forward = lib.func.linearize(lambda x: x.sin() * x, x)
        expected, product = lib.func.jvp(lambda x: x.sin() * x, (x,), (double(lib, [1.0, 3.0]),))
        assert value.tolist() == pytest.approx(expected.tolist())
        pushed = push_forward(double(lib, [1.0, 3.0]))
        assert pushed.tolist() == pytest.approx(product.tolist())

    def test_function_runs_once(self, lib):
        calls = []

        def f(x):
            calls.append(1)
            return x * x

        _, push_forward = lib.func.linearize(f, double(lib, [1.0]))
        before = len(calls)
        for _ in range(3):
            push_forward(double(lib, [1.0]))
        assert len(calls) == before

    def test_trees(self, lib):
        primals = (double(lib, 2.0), {"a": double(lib, 3.0)})
        value, push_forward = lib.func.linearize(
            lambda x, y: {"p": x * y["a"], "s": [x + y["a"]]}, *primals
        )
        product = push_forward(double(lib, 1.0), {"a": double(lib, 10.0)})
        assert (product["p"].item(), product["s"][0].item()) == (23.0, 11.0)

    def test_tangents_must_be_like_the_primals(self, lib):
        _, push_forward = lib.func.linearize(lib.sin, lib.ones(2))
        with pytest.raises(RuntimeError, match="to have the same argspec as the primals"):
            push_forward(lib.ones(2), lib.ones(2))
        with pytest.raises(RuntimeError, match="shape .* in flattened pytree doesn't match the sh"):
            push_forward(lib.ones(3))
        with pytest.raises(RuntimeError, match="dtype .* in flattened pytree doesn't match the dt"):
            push_forward(lib.ones(2, dtype=lib.float64))

    def test_checkpoint(self, lib):
        checkpoint = importlib.import_module(lib.__name__ + ".utils.checkpoint").checkpoint

        def f(x):
            return checkpoint(lambda x: x.sin() * x, x, use_reentrant=False) * x

        x, t = double(lib, [0.1, 0.2]), double(lib, [1.0, 3.0])
        value, push_forward = lib.func.linearize(f, x)
        expected, product = lib.func.jvp(lambda x: x.sin() * x * x, (x,), (t,))
        assert value.tolist() == pytest.approx(expected.tolist())
        assert push_forward(t).tolist() == pytest.approx(product.tolist())
        with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
            lib.func.grad(lambda x: f(x).sum())(x)

    def test_hooks_of_saved_tensors_are_not_called(self, lib):
        hooks = lib.autograd.graph.saved_tensors_hooks
        seen = []

        def f(x):
            with hooks(lambda t: seen.append(t) or t, lambda t: t):
                return x * x

        with hooks(lambda t: seen.append(t) or t, lambda t: t):
            _, push_forward = lib.func.linearize(f, double(lib, [3.0]))
            assert push_forward(double(lib, [1.0])).tolist() == [6.0]
            assert seen == []
            x = double(lib, [3.0]).requires_grad_()
            (x * x).sum().backward()
        assert len(seen) == 2


class Square:
    """A custom Function with a derivative of its own, for either library."""

    def __new__(cls, lib):
        class Squared(lib.autograd.Function):
            @staticmethod
            def forward(x):
                return x * x

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)
                ctx.save_for_forward(*inputs)

            @staticmethod
            def backward(ctx, g):
                return 2 * g * ctx.saved_tensors[0]

            @staticmethod
            def jvp(ctx, t):
                return 2 * t * ctx.saved_tensors[0]

        return Squared


class TestLinearizeWithoutRecording:
    """`no_grad` does not switch forward mode off, and `linearize` is forward mode."""

    @pytest.mark.parametrize("transform", ["linearize", "jvp"])
    @pytest.mark.parametrize(
        "square",
        [
            lambda lib, x: x * x,
            lambda lib, x: x.clone().mul_(x),
            lambda lib, x: Square(lib).apply(x),
            lambda lib, x: lib.vmap(lambda x: x * x)(x.expand(1)).squeeze(0),
            lambda lib, x: lib.func.grad(lambda x: x**3 / 3)(x),
        ],
        ids=["function", "in place", "Function", "vmap", "grad"],
    )
    def test_the_tangent_goes_on(self, lib, transform, square):
        def f(x):
            with lib.no_grad():
                y = square(lib, x)
            return x * y

        x, t = lib.tensor(3.0), lib.tensor(1.0)
        if transform == "jvp":
            assert lib.func.jvp(f, (x,), (t,))[1].item() == 27.0
        else:
            assert lib.func.linearize(f, x)[1](t).item() == 27.0

    def test_inference_mode_ends_it(self, lib):
        def f(x):
            with lib.inference_mode():
                y = x * x
            return x * y.clone()

        assert lib.func.linearize(f, lib.tensor(3.0))[1](lib.tensor(1.0)).item() == 9.0

    def test_a_view_made_in_inference_mode_is_a_part(self, lib):
        def f(x):
            y = x * 2
            with lib.inference_mode():
                return y[::2].view(2)

        x = lib.tensor([1.0, 2.0, 3.0])
        assert lib.func.linearize(f, x)[1](x).tolist() == [2.0, 6.0]

    def test_levels_below_do_not_record(self):
        def f(x):
            with wengert.no_grad():
                y = x * x
            return x * y

        def product(x):
            return wengert.func.linearize(f, x)[1](wengert.tensor(1.0))

        plain = wengert.func.jvp(f, (wengert.tensor(3.0),), (wengert.tensor(1.0),))[1]
        assert product(wengert.tensor(3.0)) == plain
        value, pull_back = wengert.func.vjp(
            lambda x: wengert.func.linearize(f, x)[0], wengert.tensor(3.0)
        )
        assert pull_back(wengert.ones(()))[0].item() == 9.0

    def test_an_argument_may_be_changed_in_place(self):
        def f(x):
            x.mul_(2)
            with wengert.no_grad():
                x.view(1).mul_(2)
            return x * 3

        x = wengert.tensor(3.0)
        value, push_forward = wengert.func.linearize(f, x)
        assert (value.item(), x.item()) == (36.0, 12.0)
        assert push_forward(wengert.tensor(1.0)).item() == 12.0


def test_linearized_checkpoint_inside_transforms():
    from wengert.utils.checkpoint import checkpoint

    def cube(x):
        return checkpoint(lambda x: x**3, x, use_reentrant=False)

    def slope(x):
        return wengert.func.linearize(cube, x)[1](wengert.ones(()))

    assert wengert.func.grad(slope)(wengert.tensor(2.0)).item() == 12.0
    assert wengert.vmap(slope)(wengert.tensor([1.0, 2.0])).tolist() == [3.0, 12.0]


def test_linearize_gives_zeros_where_nothing_depends():
    constant = wengert.ones(2)
    _, push_forward = wengert.func.linearize(lambda x: (x * 2, constant), wengert.ones(3))
    pushed = push_forward(wengert.ones(3))
    assert pushed[0].tolist() == [2.0, 2.0, 2.0]
    assert pushed[1].tolist() == [0.0, 0.0]


def test_linearized_function_inside_transforms():
    _, push_forward = wengert.func.linearize(lambda x: x**3, wengert.tensor([1.0, 2.0]))
    columns = wengert.vmap(push_forward)(wengert.eye(2))
    assert columns.tolist() == [[3.0, 0.0], [0.0, 12.0]]
    assert wengert.func.grad(lambda t: push_forward(t).sum())(wengert.ones(2)).tolist() == [3, 12]


def test_a_pull_back_may_give_up_its_graph(lib):
    _, pull_back = lib.func.vjp(lib.sin, lib.zeros(2))
    assert pull_back(lib.ones(2), retain_graph=True, create_graph=True)[0].tolist() == [1.0, 1.0]
    assert pull_back(lib.ones(2), retain_graph=False)[0].tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        pull_back(lib.ones(2))


def test_a_view_made_without_recording_inside_two_derivatives(lib):
    """It has no history, but the result of a differentiation is a view of it that has one."""

    def f(x):
        with lib.no_grad():
            return x.view(2)

    def pushed(x):
        return lib.func.jvp(f, (x * 1,), (lib.ones(2),))[0]

    _, pull_back = lib.func.vjp(pushed, lib.tensor([1.0, 2.0]))
    assert pull_back(lib.ones(2))[0].tolist() == [0.0, 0.0]
