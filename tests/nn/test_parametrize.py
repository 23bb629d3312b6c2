"""Parametrizations and the older norms of weights, against PyTorch."""

import copy
import pickle

import pytest

import wengert

torch = pytest.importorskip("torch")

from nn.both import LIBS, assert_same, compare, copied, derivatives, tensors  # noqa: E402


def parametrizations(lib):
    """Modules to parametrize by, in a library."""

    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, a):
            return a.triu()

    class Double(lib.nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, x):
            return x / 2

    class Product(lib.nn.Module):
        def forward(self, a, b):
            return a * b

        def right_inverse(self, w):
            return w.abs().sqrt(), w.sign() * w.abs().sqrt()

    class Plain(lib.nn.Module):
        def forward(self, x):
            return x.exp()

    class Wrong(lib.nn.Module):
        def __init__(self, change, back=lambda x: x):
            super().__init__()
            self.change, self.back = change, back

        def forward(self, x):
            return self.change(x)

        def right_inverse(self, x):
            return self.back(x)

    return Symmetric, Double, Product, Plain, Wrong


@pytest.mark.parametrize("which", ["symmetric", "twice", "product", "plain"])
def test_parametrized_layers(which):
    def build(lib):
        symmetric, double, product, plain, _ = parametrizations(lib)
        layer = lib.nn.Linear(3, 3)
        register = lib.nn.utils.parametrize.register_parametrization
        chosen = {"symmetric": [symmetric], "twice": [symmetric, double], "product": [product],
                  "plain": [plain]}[which]  # fmt: skip
        for each in chosen:
            assert register(layer, "weight", each()) is layer
        return layer

    compare(build, lambda lib, module, x: (module(x), module.weight), (2, 3))


def test_state_of_parametrized_modules(lib):
    utils = lib.nn.utils.parametrize
    symmetric, double, product, plain, _ = parametrizations(lib)
    layer = lib.nn.Linear(3, 3)
    weight, before = layer.weight, layer.weight.detach().clone()
    utils.register_parametrization(layer, "weight", symmetric())
    assert layer.parametrizations.weight.original is weight  # an optimizer may know it
    assert utils.is_parametrized(layer) and utils.is_parametrized(layer, "weight")
    assert not utils.is_parametrized(layer, "bias")
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, lib.nn.Linear)
    assert utils.type_before_parametrizations(layer) is lib.nn.Linear
    assert lib.equal(layer.weight, before.triu() + before.triu(1).mT)
    layer.weight = lib.ones(3, 3)
    assert lib.equal(weight, lib.ones(3, 3).triu())
    with utils.cached():
        assert layer.weight is layer.weight
        with utils.cached():
            assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    other = copy.deepcopy(layer)
    assert lib.equal(other.weight, layer.weight)
    assert other.parametrizations.weight.original is not weight
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(layer)
    assert sorted(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    utils.remove_parametrizations(layer, "weight")
    assert type(layer) is lib.nn.Linear and layer.weight is weight
    assert lib.equal(weight, lib.ones(3, 3))
    utils.register_parametrization(layer, "weight", double())
    utils.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert lib.equal(layer.weight, lib.full((3, 3), 0.5))


def test_several_originals(lib):
    utils = lib.nn.utils.parametrize
    product = parametrizations(lib)[2]
    layer = lib.nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    utils.register_parametrization(layer, "weight", product())
    names = ["parametrizations.weight.original0", "parametrizations.weight.original1"]
    assert sorted(layer.state_dict()) == ["bias", *names]
    assert layer.parametrizations.weight.ntensors == 2
    assert lib.allclose(layer.weight, before)
    layer.weight = lib.full((2, 2), 4.0)
    assert lib.allclose(layer.parametrizations.weight.original0, lib.full((2, 2), 2.0))
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        utils.remove_parametrizations(layer, "weight", leave_parametrized=False)
    other = utils.transfer_parametrizations_and_params(layer, lib.nn.Linear(2, 2))
    assert other.parametrizations.weight.original1 is layer.parametrizations.weight.original1
    utils.remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, lib.nn.Parameter) and layer.weight[0, 0].item() == 4
    single = lib.nn.Linear(2, 2)
    utils.register_parametrization(single, "weight", parametrizations(lib)[1]())
    other = utils.transfer_parametrizations_and_params(single, lib.nn.Linear(2, 2), "weight")
    assert other.parametrizations.weight.original is single.parametrizations.weight.original


def test_buffers_can_be_parametrized(lib):
    layer = lib.nn.Linear(2, 2)
    layer.register_buffer("scale", lib.ones(2))
    utils = lib.nn.utils.parametrize
    utils.register_parametrization(layer, "scale", parametrizations(lib)[1]())
    assert "parametrizations.scale.original" in dict(layer.named_buffers())
    assert layer.scale.tolist() == [1.0, 1.0]
    utils.remove_parametrizations(layer, "scale")
    assert layer.scale.tolist() == [1.0, 1.0] and "scale" in layer._buffers


@pytest.mark.parametrize(
    "text, kind, phrase",
    [
        ("register(layer, 'nothing', double())", ValueError, "does not have a parameter, a buffer"),
        ("u.remove_parametrizations(layer, 'weight')", ValueError, "have a parametrization on wei"),
        ("u.ParametrizationList([], layer.weight)", ValueError, "requires one or more modules"),
        ("register(layer, 'weight', wrong(lambda x: 1))", ValueError, "must return a tensor"),
        ("register(layer, 'weight', wrong(lambda x: x[0]))", ValueError, "not change the shape"),
        ("register(layer, 'weight', wrong(lambda x: x.double()))", ValueError, "change the dtype"),
        ("register(layer, 'weight', wrong(lambda x: x, lambda x: 1))", ValueError, "Got int"),
        ("register(layer, 'weight', wrong(lambda x: x, lambda x: x.double()))", ValueError,
         "When `right_inverse` outputs one tensor, it may not change the dtype"),
        ("register(layer, 'weight', wrong(lambda x: x, lambda x: [x, 1]))", ValueError,
         "Got element 1 of the sequence with type int"),
        ("register(twice, 'weight', wrong(lambda x: x[0]))", ValueError, "not change the shape"),
        ("register(twice, 'weight', wrong(lambda x: 1))", ValueError, "must return a tensor"),
        ("register(twice, 'weight', wrong(lambda x: x, lambda x: x[0]))", ValueError,
         "returned by parametrization.right_inverse must have the same shape"),
        ("register(twice, 'weight', wrong(lambda x: x, lambda x: 1))", ValueError,
         "parametrization.right_inverse must return a tensor. Got: int"),
        ("setattr(register(layer, 'weight', plain()), 'weight', lib.ones(3, 3))", RuntimeError,
         "parametrization Plain does not implement right_inverse"),
    ],
)  # fmt: skip
def test_errors(lib, text, kind, phrase):
    _, double, _, plain, wrong = parametrizations(lib)
    utils = lib.nn.utils.parametrize
    register = utils.register_parametrization
    names = {
        "u": utils, "register": register, "double": double, "plain": plain, "wrong": wrong,
        "layer": lib.nn.Linear(3, 3), "twice": register(lib.nn.Linear(3, 3), "weight", double()),
        "lib": lib,
    }  # fmt: skip
    with pytest.raises(kind, match=phrase):
        eval(text, names)


def test_unsafe_ones_change_shapes(lib):
    *_, wrong = parametrizations(lib)
    layer = lib.nn.Linear(3, 3)
    register = lib.nn.utils.parametrize.register_parametrization
    register(layer, "weight", wrong(lambda x: x[:2]), unsafe=True)
    register(layer, "bias", wrong(lambda x: x[:2]), unsafe=True)
    assert layer(lib.ones(1, 3)).shape == (1, 2)


# What there is to parametrize by ------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("old", [True, False])
@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated")
def test_weight_norm(dim, old):
    def build(lib):
        utils = lib.nn.utils
        norm = utils.weight_norm if old else utils.parametrizations.weight_norm
        return norm(lib.nn.Linear(3, 4), dim=dim)

    # PyTorch's second derivatives are wrong here, by its own gradgradcheck.
    call = lambda lib, module, x: (module(x), module.weight)
    compare(build, call, (2, 3), twice=dim is None)


def test_second_derivatives_of_weight_norm():
    from wengert.nn.utils.weights import normalized_weight

    v, g = tensors(wengert, (2, 3), (2, 1))
    assert wengert.autograd.gradgradcheck(normalized_weight, (v, g))


@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated")
def test_older_weight_norm(lib):
    layer = lib.nn.utils.weight_norm(lib.nn.Linear(3, 4))
    assert sorted(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    with pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks"):
        lib.nn.utils.weight_norm(layer)
    newer = lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(3, 4))
    newer.load_state_dict(layer.state_dict())  # by the older names
    assert lib.allclose(newer.weight, layer.weight)
    before = layer.weight.detach().clone()
    lib.nn.utils.remove_weight_norm(layer)
    assert isinstance(layer.weight, lib.nn.Parameter) and lib.allclose(layer.weight, before)
    assert not layer._forward_pre_hooks
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        lib.nn.utils.remove_weight_norm(layer)
    with pytest.warns(FutureWarning, match="in favor of"):
        lib.nn.utils.weight_norm(lib.nn.Linear(2, 2))


def test_norms_except_one_dimension():
    found = []
    for lib in LIBS:
        (v,) = tensors(lib, (2, 3, 4))
        results = [lib.norm_except_dim(v, 2, dim) for dim in (-1, 0, 1, 2)]
        results.append(lib.norm_except_dim(v, 1, 1))
        found.append([results, derivatives(lib, results, [v])])
    assert_same(*found)


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("options", [{}, {"dim": 1, "n_power_iterations": 3}])
def test_spectral_norm(old, options):
    found = []
    state = None
    for lib in (torch, wengert):
        utils = lib.nn.utils
        norm = utils.spectral_norm if old else utils.parametrizations.spectral_norm
        layer = norm(lib.nn.Linear(3, 4), **options).double()
        if state is None:
            state = layer.state_dict()
            layer.load_state_dict(state)  # `double` has lost the weight of the older form
            start = {name: copied(t) for name, t in state.items()}
        else:
            assert list(layer.state_dict()) == list(state)
            layer.load_state_dict(start)
        (x,) = tensors(lib, (2, 3))
        first, second = layer(x), layer(x)  # each turns the vectors a little
        results = [first, second, derivatives(lib, [first, second], [x, *layer.parameters()])]
        results += [t.detach().clone() for t in layer.buffers()]
        layer.eval()
        results += [layer(x), layer(x)]
        found.append(results)
    assert_same(found[1], found[0])


def test_spectral_norms_are_found(lib):
    layer = lib.nn.utils.parametrizations.spectral_norm(lib.nn.Linear(4, 5), n_power_iterations=40)
    assert abs(float(lib.linalg.matrix_norm(layer.weight.detach(), 2)) - 1) < 1e-3
    vector = lib.nn.utils.parametrizations.spectral_norm(lib.nn.Linear(4, 5), "bias")
    assert abs(float(vector.bias.norm()) - 1) < 1e-5


def test_older_spectral_norm(lib):
    utils = lib.nn.utils
    layer = utils.spectral_norm(lib.nn.Linear(3, 4))
    with pytest.raises(RuntimeError, match="Cannot register two spectral_norm hooks"):
        utils.spectral_norm(layer)
    state = layer.state_dict()
    assert state._metadata[""]["spectral_norm"] == {"weight.version": 1}
    layer(lib.ones(1, 3))
    weight = layer.weight.detach().clone()
    older = {name: t for name, t in layer.state_dict().items() if name != "weight_v"}
    older["weight"] = weight
    other = utils.spectral_norm(lib.nn.Linear(3, 4)).eval()
    other.load_state_dict(older)
    other(lib.ones(1, 3))
    assert lib.allclose(other.weight, weight, atol=1e-5)
    utils.remove_spectral_norm(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    assert not layer._state_dict_hooks
    if lib is wengert:  # PyTorch forgets this one
        assert not layer._load_state_dict_pre_hooks
    with pytest.raises(ValueError, match="spectral_norm of 'weight' not found"):
        utils.remove_spectral_norm(layer)
    with pytest.raises(ValueError, match="to be positive, but got n_power_iterations=0"):
        utils.spectral_norm(lib.nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        utils.parametrizations.spectral_norm(lib.nn.Linear(2, 2), dim=2)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(shape, kind, trivial):
    def build(lib):
        layer = lib.nn.Linear(shape[1], shape[0])
        torch.manual_seed(3)
        value = torch.nn.init.orthogonal_(torch.empty(shape))
        layer.weight.data = copied(value) if lib is wengert else value
        orthogonal = lib.nn.utils.parametrizations.orthogonal
        return orthogonal(layer, orthogonal_map=kind, use_trivialization=trivial)

    def call(lib, module, x):
        columns = module.weight if shape[0] >= shape[1] else module.weight.mT
        identity = lib.eye(columns.size(1), dtype=lib.float64)
        assert lib.allclose(columns.mT @ columns, identity, atol=1e-5)
        return module(x), module.weight

    compare(build, call, (2, shape[1]), tolerance=1e-6)


def test_orthogonal_errors(lib):
    orthogonal = lib.nn.utils.parametrizations.orthogonal
    with pytest.raises(ValueError, match="has no parameter or buffer with name 'a'"):
        orthogonal(lib.nn.Linear(2, 2), "a")
    with pytest.raises(ValueError, match="Expected a matrix or batch of matrices. Got a tensor of"):
        orthogonal(lib.nn.Linear(2, 2), "bias")
    with pytest.raises(ValueError, match="orthogonal_map has to be one of"):
        orthogonal(lib.nn.Linear(2, 2), orthogonal_map="x")
    layer = orthogonal(lib.nn.Linear(2, 2), use_trivialization=False)
    with pytest.raises(NotImplementedError, match="not possible to assign"):
        layer.weight = lib.eye(2)
    with pytest.raises(ValueError, match="Expected a matrix or batch of matrices of shape"):
        layer.weight = lib.eye(3)
    reflected = orthogonal(lib.nn.Linear(2, 3), use_trivialization=False)
    reflected.weight = lib.eye(3)[:, :2]
    assert lib.allclose(reflected.weight, lib.eye(3)[:, :2], atol=1e-6)


# Other helpers ------------------------------------------------------------------------------------


def test_skip_init(lib):
    layer = lib.nn.utils.skip_init(lib.nn.Linear, 3, 4, bias=False)
    assert layer.weight.shape == (4, 3) and layer.weight.device.type == "cpu"
    with pytest.raises(RuntimeError, match="Expected a Module; got"):
        lib.nn.utils.skip_init(int)
    with pytest.raises(RuntimeError, match="must support a 'device' arg"):
        lib.nn.utils.skip_init(lib.nn.ReLU)


@pytest.mark.filterwarnings("ignore:.*stateless.functional_call. is deprecated")
def test_stateless(lib):
    layer = lib.nn.Linear(2, 2)
    state = {"weight": lib.eye(2), "bias": lib.zeros(2)}
    result = lib.nn.utils.stateless.functional_call(layer, state, lib.ones(1, 2))
    assert result.tolist() == [[1.0, 1.0]]


class Statistics:
    """What a batch norm in evaluation has."""

    def __init__(self, lib):
        self.training = False
        self.num_features = 3
        self.eps = 1e-3
        self.running_mean, self.weight, self.bias = tensors(lib, (3,), (3,), (3,), grad=False)
        self.running_var = self.running_mean**2 + 1


def test_fusion():
    found = []
    for lib in LIBS:
        utils = lib.nn.utils
        norm = Statistics(lib)
        w, b, kernel = tensors(lib, (3, 2), (3,), (3, 3, 2), seed=2)
        stats = (norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
        results = [
            utils.fuse_linear_bn_weights(w, b, *stats),
            utils.fuse_conv_bn_weights(kernel, None, *stats, transpose=True),
            utils.fuse_conv_bn_weights(kernel, b, *stats[:3], None, None),
        ]
        linear = lib.nn.Linear(2, 3).double().eval()
        fused = utils.fuse_linear_bn_eval(linear, norm)
        expected = (linear(w[:, :2]) - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
        assert lib.allclose(fused(w[:, :2]), expected * norm.weight + norm.bias)
        for wrong in (linear.train(), lib.nn.Linear(2, 4).eval()):
            with pytest.raises(AssertionError, match="Fusion only for eval!|To fuse, linear.out"):
                utils.fuse_linear_bn_eval(wrong, norm)
        found.append(results)
    assert_same(*found)
