"""`Library`, definitions by name, and looking operators up. What has `lib` runs on PyTorch too."""

import pickle
import warnings

import pytest

import wengert
from library.support import fresh_name, make
from wengert.library.overloads import overload_of


@pytest.fixture
def library(lib):
    """A library with a namespace of its own, until the test has ended."""
    with lib.library._scoped_library(fresh_name("wengert_library"), "DEF") as made:
        yield made


@pytest.fixture
def ops(lib, library):
    """The operators of that library."""
    return getattr(lib.ops, library.ns)


def test_define_and_implement(lib, library, ops):
    assert library.define("mul(Tensor x, Tensor y) -> Tensor") == "mul"
    x = lib.ones(2)
    with pytest.raises(NotImplementedError, match=f"Could not run '{library.ns}::mul'"):
        ops.mul(x, x)
    library.impl("mul", lambda x, y: x * y, "CPU")
    assert ops.mul(x, x + 1).tolist() == [2.0, 2.0]
    assert ops.mul.default(x, y=x + 1).tolist() == [2.0, 2.0]


def test_kinds_of_libraries(lib, library):
    with pytest.raises(ValueError, match="Unsupported kind: SOMETHING"):
        lib.library.Library("ns", "SOMETHING")
    with pytest.raises(ValueError, match="prim is a reserved namespace"):
        lib.library.Library("prim", "DEF")
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY can be used to register"):
        lib.library.Library(library.ns, "DEF")
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY can be used to register"):
        lib.library.Library("aten", "DEF")


def test_fragments_and_implementations(lib, library, ops):
    with lib.library._scoped_library(library.ns, "FRAGMENT") as fragment:
        fragment.define("double(Tensor x) -> Tensor")
        with lib.library._scoped_library(library.ns, "IMPL", "CPU") as kernels:
            with pytest.raises(RuntimeError, match="Cannot define an operator inside of"):
                kernels.define("other(Tensor x) -> Tensor")
            kernels.impl("double", lambda x: x * 2)
            assert ops.double(lib.ones(1)).item() == 2.0
        with pytest.raises(NotImplementedError, match="Could not run"):
            ops.double(lib.ones(1))
    with pytest.raises(AttributeError, match="object has no attribute 'double'"):
        ops.double(lib.ones(1))


def test_definitions_end_with_their_library(lib):
    namespace = fresh_name("wengert_library")
    first = lib.library.Library(namespace, "DEF")
    first.define("f(Tensor x) -> Tensor")
    del first
    second = lib.library.Library(namespace, "DEF")
    with pytest.raises(AttributeError):
        getattr(lib.ops, namespace).f
    second.define("f(Tensor x) -> Tensor")


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("mul(Tensor x) -> Tensor", "multiple times"),
        ("elsewhere::f(Tensor x) -> Tensor", r"Explicitly provided namespace \(elsewhere\)"),
        ("f(Tensr x) -> Tensor", "unknown type specifier"),
        ("f(Tensor x)", "expected"),
    ],
)
def test_definitions_that_are_refused(library, schema, message):
    library.define("mul(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match=message):
        library.define(schema)


def test_kernels_that_are_refused(library):
    library.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="could not parse dispatch key: TOASTER"):
        library.impl("f", lambda x: x, "TOASTER")
    with pytest.raises(TypeError, match="Input function is required to be a callable"):
        library.impl("f", 3, "CPU")


def test_overloads(lib, library, ops):
    library.define("f(Tensor x, Tensor y) -> Tensor")
    library.define("f.number(Tensor x, float y) -> Tensor")
    library.impl("f", lambda x, y: x + y, "CPU")
    library.impl("f.number", lambda x, y: x - y, "CPU")
    x = lib.ones(1)
    assert sorted(ops.f.overloads()) == ["default", "number"]
    assert ops.f(x, x).item() == 2.0
    assert ops.f(x, 3.0).item() == -2.0
    assert ops.f.number(x, 3).item() == -2.0
    with pytest.raises(RuntimeError, match="failed to match any schema"):
        ops.f(x, "a")
    with pytest.raises(AttributeError, match="has no overload name 'other'"):
        ops.f.other


def test_an_overload(lib, library, ops):
    library.define("f(Tensor x) -> Tensor")
    library.define("f.second(Tensor x) -> Tensor")
    overload = ops.f.second
    assert overload.name() == f"{library.ns}::f.second"
    assert ops.f.default.name() == f"{library.ns}::f"
    assert str(overload) == f"{library.ns}.f.second"
    assert repr(overload) == f"<OpOverload(op='{library.ns}.f', overload='second')>"
    assert overload.__name__ == "f.second"
    assert (overload.namespace, overload._opname, overload._overloadname) == (
        library.ns,
        "f",
        "second",
    )
    assert str(overload._schema) == f"{library.ns}::f.second(Tensor x) -> Tensor"
    assert overload._schema.overload_name == "second"
    assert overload.overloadpacket is ops.f
    assert ops.f.second is overload
    assert overload.tags == []
    assert str(ops.f) == f"{library.ns}.f"
    assert repr(ops.f) == f"<OpOverloadPacket(op='{library.ns}.f')>"
    assert ops.f.__name__ == "f"


def test_what_is_not_there(lib, ops):
    with pytest.raises(AttributeError, match="object has no attribute 'nothing'"):
        ops.nothing
    with pytest.raises(AttributeError, match="object has no attribute 'f'"):
        lib.ops.no_such_namespace.f


def test_composite_kernels(lib, library, ops):
    library.define("square(Tensor x) -> Tensor")
    library.impl("square", lambda x: x * x)
    x = lib.tensor(3.0, requires_grad=True)
    ops.square(x).backward()
    assert x.grad.item() == 6.0
    library.impl("square", lambda x: x * 0, "CPU")
    assert ops.square(x).item() == 0.0


def test_kernels_for_all_devices(lib, library, ops):
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
    assert ops.f(lib.ones(1)).item() == 2.0
    assert ops.f(lib.ones(1, device="meta")).device.type == "meta"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl("f", lambda x: x + 5, "CPU")
    assert ops.f(lib.ones(1)).item() == 6.0


def test_a_formula_for_a_defined_operator(lib, library, ops):
    library.define("double(Tensor x) -> Tensor")
    library.impl("double", lambda x: x * 2, "CPU")
    lib.library.register_autograd(f"{library.ns}::double", lambda ctx, grad: grad * 7)
    x = lib.tensor(3.0, requires_grad=True)
    out = ops.double(x)
    assert out.grad_fn.name() == f"GeneratedBackwardFor_{library.ns}_double_defaultBackward"
    out.backward()
    assert x.grad.item() == 7.0


def test_formulas_need_positional_tensors(lib, library):
    library.define("f(Tensor x, *, Tensor y) -> Tensor")
    with pytest.raises(NotImplementedError, match="register_autograd with kwarg-only Tensor args"):
        lib.library.register_autograd(f"{library.ns}::f", lambda ctx, grad: grad)


def test_autograd_kernels(lib, library, ops):
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x.detach() * 2, "CPU")
    library.impl("f", lambda x: x * 3, "Autograd")
    x = lib.tensor(1.0, requires_grad=True)
    out = ops.f(x)
    assert out.item() == 3.0
    out.backward()
    assert x.grad.item() == 3.0


def test_definitions_by_name(lib):
    name = f"wengert_tests::{fresh_name('named')}"
    found = name.partition("::")[2]
    lib.library.define(name, "(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="multiple times"):
        lib.library.define(name, "(Tensor x) -> Tensor")

    @lib.library.impl(name, "cpu")
    def _(x):
        return x * 2

    @lib.library.register_fake(name)
    def _(x):
        return lib.empty_like(x)

    operator = getattr(lib.ops.wengert_tests, found)
    assert operator(lib.ones(1)).item() == 2.0
    assert operator(lib.ones(1, device="meta")).device.type == "meta"
    lib.library.register_kernel(name, "cpu", lambda x: x * 3)
    assert operator(lib.ones(1)).item() == 3.0


def test_names_without_namespace(lib):
    with pytest.raises(ValueError, match='Expected `qualname` to be of the form "namespace::name"'):
        lib.library.define("f", "(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="expected schema to look like"):
        lib.library.define("wengert_tests::named", "named(Tensor x) -> Tensor")


def test_what_can_be_registered_for(lib, define):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2)
    packet = getattr(lib.ops.wengert_tests, operator._name)
    x = lib.tensor(1.0, requires_grad=True)
    for factor, target in enumerate((operator._qualname, packet.default, operator), 1):
        lib.library.register_autograd(target, lambda ctx, grad, factor=factor: grad * factor)
        x.grad = None
        operator(x).backward()
        assert x.grad.item() == factor
    with pytest.raises(ValueError, match="got unexpected type for op"):
        lib.library.register_autograd(3, lambda ctx, grad: grad)
    with pytest.raises(AttributeError):
        lib.library.register_autograd("wengert_tests::nothing", lambda ctx, grad: grad)


def cpu_keys(lib):
    return lib._C.DispatchKeySet(lib._C.DispatchKey.CPU)


def test_kernels_can_be_taken_out(lib, define):
    operator = define("(Tensor x) -> Tensor", lambda x: x * 2, device_types="cpu")
    for key in ("CPU", lib._C.DispatchKey.CPU):
        kernel = lib.library.get_kernel(operator._qualname, key)
        assert kernel.call_boxed(cpu_keys(lib), lib.ones(1)).item() == 2.0
        assert kernel.call_boxed(cpu_keys(lib), x=lib.ones(1)).item() == 2.0


def test_kernels_of_the_library_can_be_taken_out(lib):
    x = lib.zeros(2, requires_grad=True)
    for operator in ("aten::cos", lib.ops.aten.cos.default):
        out = lib.library.get_kernel(operator, "CPU").call_boxed(cpu_keys(lib), x)
        assert out.tolist() == [1.0, 1.0]
        assert not out.requires_grad
    kernel = lib.library.get_kernel("aten::add.Tensor", "CPU")
    assert kernel.call_boxed(cpu_keys(lib), x, x, alpha=2).tolist() == [0.0, 0.0]
    assert kernel.op_handle is not None
    y = lib.ones(2)
    lib.library.get_kernel("aten::mul_.Tensor", "CPU").call_boxed(cpu_keys(lib), y, y + 1)
    assert y.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("key", ["CPU", "CUDA"])
def test_a_composite_kernel_is_that_of_devices(lib, library, ops, key):
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x * 2)
    kernel = lib.library.get_kernel(ops.f.default, key)
    assert kernel.call_boxed(cpu_keys(lib), lib.ones(1)).item() == 2.0


@pytest.mark.parametrize(
    "operator, key, error, match",
    [
        ("aten::sin", "Nonsense", ValueError, "Invalid dispatch key: Nonsense"),
        ("aten::sine", "CPU", RuntimeError, "operator aten::sine does not exist"),
        ("sin", "CPU", RuntimeError, "operator sin does not exist"),
        ("aten::sin", "Autograd", RuntimeError, "Alias keys do not have runtime kernel"),
        (3, "CPU", ValueError, "got unexpected type for op"),
    ],
)
def test_kernels_that_cannot_be_taken_out(lib, operator, key, error, match):
    with pytest.raises(error, match=match):
        lib.library.get_kernel(operator, key)


def test_a_kernel_that_is_not_there(lib, library, ops):
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x * 2, "CPU")
    with pytest.raises(RuntimeError, match=f"no kernel for CUDA for {library.ns}::f"):
        lib.library.get_kernel(ops.f.default, "CUDA")
    kernel = lib.library.get_kernel(ops.f.default, "CPU")
    with pytest.raises(TypeError, match=r"call_boxed\(\): incompatible function arguments"):
        kernel.call_boxed(3, lib.ones(1))


@pytest.mark.parametrize(
    ("name", "overload", "arguments", "expected"),
    [
        ("add", "Tensor", (2.0, 3.0), 5.0),
        ("mul", "Tensor", (2.0, 3.0), 6.0),
        ("relu", "default", (-1.0,), 0.0),
        ("pow", "Tensor_Tensor", (2.0, 3.0), 8.0),
        ("add_", "Tensor", (2.0, 3.0), 5.0),
        ("sum", "default", (2.0,), 2.0),
    ],
)
def test_operators_of_the_library(lib, name, overload, arguments, expected):
    packet = getattr(lib.ops.aten, name)
    assert overload in packet.overloads()
    found = getattr(packet, overload)
    assert found(*map(lib.tensor, arguments)).item() == expected
    assert packet(*map(lib.tensor, arguments)).item() == expected
    assert found._schema.name == f"aten::{name}"
    assert str(found) == f"aten.{name}.{overload}"


def test_operators_of_the_library_record(lib):
    x = lib.tensor(3.0, requires_grad=True)
    lib.ops.aten.mul.Tensor(x, x).backward()
    assert x.grad.item() == 6.0


# Ours alone --------------------------------------------------------------------------------------


def test_both_namespaces_have_the_operators_of_the_library():
    assert wengert.ops.wengert.add is wengert.ops.aten.add
    assert wengert.ops.aten.add.Tensor is overload_of(wengert.add)
    assert wengert.ops.aten.add.Tensor.op is wengert.add
    assert {"add", "add_", "mean"} <= set(dir(wengert.ops.aten))
    assert {"default", "dim"} <= set(dir(wengert.ops.aten.mean))


def test_redispatch():
    operator = make("(Tensor x) -> Tensor", lambda x: x * 2)._opoverload
    x = wengert.ones(1, requires_grad=True)
    everything, below = wengert.library.full_keyset, wengert.library.after_autograd_keyset
    assert operator.redispatch(everything, x).requires_grad
    assert not operator.redispatch(everything & below, x).requires_grad
    assert not wengert.ops.aten.mul.Tensor.redispatch(below, x, x).requires_grad
    assert wengert.is_grad_enabled()
    with pytest.raises(TypeError, match="expected a DispatchKeySet"):
        operator.redispatch(x)


def test_kernels_with_keyset():
    with wengert.library._scoped_library(fresh_name("wengert_library"), "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x * 2, "CPU")
        found = getattr(wengert.ops, library.ns).f.default

        def autograd(keyset, x):
            return found.redispatch(keyset & wengert.library.after_autograd_keyset, x) * x

        library.impl("f", autograd, "Autograd", with_keyset=True)
        x = wengert.tensor(3.0, requires_grad=True)
        out = found(x)
        out.backward()
        assert x.grad.item() == 6.0


def test_overloads_are_pickled():
    for found in (wengert.ops.aten.add.Tensor, wengert.ops.aten.add):
        assert pickle.loads(pickle.dumps(found)) is found


def test_the_library_itself_is_not_changed():
    with pytest.raises(NotImplementedError, match="is an operator of the library itself"):
        wengert.library.impl("aten::relu", "cpu", lambda x: x)
    with pytest.raises(RuntimeError, match="multiple times"):
        wengert.library.define("aten::relu", "(Tensor self) -> Tensor")


def test_what_is_not_supported_says_so():
    with wengert.library._scoped_library(fresh_name("wengert_library"), "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        with pytest.raises(NotImplementedError, match="fallback"):
            library.fallback(lambda: None)
        with pytest.raises(RuntimeError, match="is not an operator of the namespace"):
            library.impl("elsewhere::f", lambda x: x * 2, "CPU")


def test_formulas_and_batching_rules_end_with_their_library(lib, library, ops):
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x.detach() * 2, "CPU")
    x = lib.ones(2, requires_grad=True)
    with lib.library._scoped_library(library.ns, "FRAGMENT") as rules:
        name = f"{library.ns}::f"
        lib.library.register_autograd(name, lambda ctx, grad: grad * 7, lib=rules)
        lib.library.register_vmap(name, lambda info, in_dims, x: (x * 5, in_dims[0]), lib=rules)
        ops.f(x).sum().backward()
        assert x.grad.tolist() == [7.0, 7.0]
        assert lib.vmap(ops.f)(lib.ones(3)).tolist() == [5.0, 5.0, 5.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no batching rule any more
        assert lib.vmap(ops.f)(lib.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert "GeneratedBackward" not in str(ops.f(x).grad_fn)


def test_decorators_of_a_library(lib, library, ops):
    @lib.library.define(library, "f(Tensor x) -> Tensor")
    def f(x):
        return x + 1

    assert f(lib.ones(1)).item() == 2.0
    assert ops.f(lib.ones(1)).item() == 2.0
    library.define("g(Tensor x) -> Tensor")

    @lib.library.impl(library, "g", "CPU")
    def g(x):
        return x + 2

    assert g(lib.ones(1)).item() == 3.0
    assert ops.g(lib.ones(1)).item() == 3.0
    with pytest.raises(ValueError, match="expected qualname to be instance of str"):
        lib.library.define(3, "(Tensor x) -> Tensor")


def test_falling_through_a_key(lib, library, ops):
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x * 2, "CPU")
    library.impl("f", lib.library.fallthrough_kernel, "Autograd")
    y = ops.f(lib.ones(2, requires_grad=True))
    assert y.requires_grad and y.tolist() == [2.0, 2.0]
    with pytest.raises(NotImplementedError, match="fallthrough_kernel"):
        lib.library.fallthrough_kernel()


def test_alias_analysis(library):
    assert library.define("f(Tensor x) -> Tensor", "FROM_SCHEMA") == "f"
    with pytest.raises(RuntimeError, match="Invalid alias_analysis type GUESSED"):
        library.define("g(Tensor x) -> Tensor", "GUESSED")


def test_tags(lib, library, ops, define):
    library.define("f(Tensor x) -> Tensor", tags=lib.Tag.pointwise)
    library.define("g(Tensor x) -> Tensor", tags=(lib.Tag.reduction, lib.Tag.pointwise))
    assert ops.f.default.tags == [lib.Tag.pointwise]
    assert ops.g.default.tags == [lib.Tag.reduction, lib.Tag.pointwise]
    custom = define("(Tensor x) -> Tensor", lambda x: x + 1, tags=[lib.Tag.pointwise])
    assert custom._opoverload.tags == [lib.Tag.pt2_compliant_tag, lib.Tag.pointwise]
    assert str(lib.Tag.pointwise) == "Tag.pointwise"


def test_tags_for_forms_of_an_operator(lib, library, ops):
    library.define("f_(Tensor(a!) x) -> Tensor(a!)", tags=lib.Tag.inplace)
    library.define("f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", tags=lib.Tag.out)
    assert ops.f_.default.tags == [lib.Tag.inplace]
    assert ops.f.out.tags == [lib.Tag.out]
    assert len({lib.Tag.inplace, lib.Tag.inplace_view, lib.Tag.out, lib.Tag.out_variant}) == 4
    with pytest.raises(TypeError):
        library.define("h(Tensor x) -> Tensor", tags=("pointwise",))


def test_kernels_that_are_not_to_be_replaced(library):
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x * 2, "CPU", allow_override=False)
    with pytest.raises(RuntimeError, match="This is not allowed since there's already a kernel"):
        library.impl("f", lambda x: x * 3, "CPU", allow_override=False)


def test_views_and_mutations_are_known(lib, library, ops):
    aten = lib.ops.aten
    assert aten.view.default.is_view and aten.split.Tensor.is_view
    assert not aten.sin.default.is_view and not aten.add_.Tensor.is_view
    library.define("view(Tensor(a) x) -> Tensor(a)")
    assert ops.view.default.is_view


def test_a_mutation_is_counted_once(lib, library, ops):
    library.define("scale_(Tensor(a!) x) -> Tensor(a!)")
    library.impl("scale_", lambda x: x.mul_(2), "CPU")
    x = lib.ones(2)
    assert ops.scale_(x) is x
    assert (x.tolist(), x._version) == ([2.0, 2.0], 1)


def test_a_mutation_that_no_operator_counts_is_counted():
    with wengert.library._scoped_library(fresh_name("wengert_library"), "DEF") as library:
        library.define("scale_(Tensor(a!) x) -> ()")

        def scale(x):
            x.numpy()[...] *= 2

        library.impl("scale_", scale, "CPU")
        x = wengert.ones(2)
        getattr(wengert.ops, library.ns).scale_(x)
        assert (x.tolist(), x._version) == ([2.0, 2.0], 1)


def test_an_autograd_kernel_by_hand(lib, library, ops):
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with lib._C._AutoDispatchBelowAutograd():
                return ops.f(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x * 2, "CPU")
    library.impl("f", Double.apply, "Autograd")
    x = lib.ones(2, requires_grad=True)
    y = ops.f(x)
    y.sum().backward()
    assert y.tolist() == [2.0, 2.0]
    assert x.grad.tolist() == [5.0, 5.0]


def test_the_keys_after_autograd(lib, library, ops):
    def autograd(keyset, x):
        assert isinstance(keyset, lib._C.DispatchKeySet)
        below = keyset & lib._C._after_autograd_keyset
        return ops.f.default.redispatch(below, x) + 1

    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x * 2, "CPU")
    library.impl("f", autograd, "Autograd", with_keyset=True)
    assert ops.f(lib.ones(1, requires_grad=True)).tolist() == [3.0]
