"""Initial values, clipping of gradients, and parameters as one vector."""

import math

import pytest


def test_constants(lib):
    init = lib.nn.init
    t = lib.nn.Parameter(lib.empty(3, 2))
    assert init.constant_(t, 4.0) is t and t.tolist() == [[4, 4]] * 3
    assert init.ones_(t).tolist() == [[1, 1]] * 3 and init.zeros_(t).sum().item() == 0
    assert init.eye_(t).tolist() == [[1, 0], [0, 1], [0, 0]]
    assert t.requires_grad and t.is_leaf and t.grad_fn is None
    kernel = init.dirac_(lib.empty(4, 2, 3), groups=2)
    assert kernel[:, :, 1].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]] and kernel.sum() == 4
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions are supported"):
        init.eye_(lib.empty(2))
    with pytest.raises(ValueError, match="Only tensors with 3, 4, or 5 dimensions"):
        init.dirac_(lib.empty(2, 2))
    with pytest.raises(ValueError, match="dim 0 must be divisible by groups"):
        init.dirac_(lib.empty(3, 2, 3), groups=2)


def test_gains(lib):
    gain = lib.nn.init.calculate_gain
    names = ["linear", "conv2d", "sigmoid", "tanh", "relu", "selu", "leaky_relu"]
    assert [gain(name) for name in names] == [
        1, 1, 1, 5 / 3, math.sqrt(2), 0.75, math.sqrt(2 / 1.0001),
    ]  # fmt: skip
    assert gain("leaky_relu", 2) == math.sqrt(0.4)
    with pytest.raises(ValueError, match="Unsupported nonlinearity other"):
        gain("other")
    with pytest.raises(ValueError, match="negative_slope True not a valid number"):
        gain("leaky_relu", True)


@pytest.mark.parametrize(
    "call, std, bound",
    [
        ("uniform_(t, -2.0, 2.0)", 2 / math.sqrt(3), 2),
        ("normal_(t, 0.0, 3.0)", 3, math.inf),
        ("trunc_normal_(t)", 0.8796, 2),
        ("trunc_normal_(t, std=0.5, a=-0.5, b=0.5)", 0.2698, 0.5),
        ("xavier_uniform_(t)", math.sqrt(2 / 500), math.sqrt(6 / 500)),
        ("xavier_normal_(t, gain=2.0)", 2 * math.sqrt(2 / 500), math.inf),
        ("kaiming_uniform_(t)", math.sqrt(2 / 300), math.sqrt(6 / 300)),
        ("kaiming_uniform_(t, math.sqrt(5), 'FAN_OUT')", math.sqrt(1 / 600), math.sqrt(1 / 200)),
        ("kaiming_normal_(t, mode='fan_out', nonlinearity='relu')", 0.1, math.inf),
    ],
)
def test_distributions(lib, call, std, bound):
    lib.manual_seed(7)
    t = lib.nn.Parameter(lib.empty(200, 300))
    assert eval(f"lib.nn.init.{call}", {"lib": lib, "math": math, "t": t}) is t
    values = t.detach()
    assert values.std().item() == pytest.approx(std, rel=0.02)
    assert abs(values.mean().item()) < 0.02 * std
    assert values.abs().max().item() <= bound
    assert t.is_leaf and t.requires_grad


def test_generators_and_kinds(lib):
    init = lib.nn.init
    first, second = (
        init.xavier_normal_(lib.empty(3, 3), generator=lib.Generator().manual_seed(5))
        for _ in range(2)
    )
    assert first.tolist() == second.tolist()
    assert init.trunc_normal_(lib.empty(4, dtype=lib.float64)).abs().max().item() <= 2
    assert init.kaiming_uniform_(lib.empty(2, 3, device="meta")).is_meta
    assert init.trunc_normal_(lib.empty(2, 3, device="meta")).is_meta
    sparse = init.sparse_(lib.empty(10, 4), 0.3)
    assert (sparse == 0).sum(0).tolist() == [3, 3, 3, 3]
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        init.kaiming_uniform_(lib.empty(0, 3))
    with pytest.warns(UserWarning, match="mean is more than 2 std from"):
        init.trunc_normal_(lib.empty(3), mean=10.0)
    with pytest.warns(FutureWarning, match="nn.init.constant. is now deprecated"):
        init.constant(lib.empty(2), 1.0)
    with pytest.raises(ValueError, match="Fan in and fan out can not be computed"):
        init.xavier_uniform_(lib.empty(3))
    with pytest.raises(ValueError, match="Mode fan not supported"):
        init.kaiming_normal_(lib.empty(3, 3), mode="fan")


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (6, 2), (3, 2, 4)])
def test_orthogonal(lib, shape):
    t = lib.nn.Parameter(lib.empty(shape))
    assert lib.nn.init.orthogonal_(t, gain=2.0) is t
    matrix = t.detach().reshape(shape[0], -1)
    products = matrix @ matrix.t() if matrix.size(0) <= matrix.size(1) else matrix.t() @ matrix
    assert (products - 4 * lib.eye(products.size(0))).abs().max().item() < 1e-5
    assert lib.nn.init.orthogonal_(lib.empty(0, 3)).shape == (0, 3)
    with pytest.raises(ValueError, match="2 or more dimensions"):
        lib.nn.init.orthogonal_(lib.empty(3))


def parameters(lib):
    made = [lib.nn.Parameter(lib.zeros(2)), lib.nn.Parameter(lib.zeros(1, 3))]
    made.append(lib.nn.Parameter(lib.zeros(4)))
    made[0].grad = lib.tensor([3.0, -4.0])
    made[1].grad = lib.tensor([[0.0, 12.0, 0.0]])
    return made


def test_clipping_by_norm(lib):
    utils = lib.nn.utils
    for order, expected in [(2.0, 13.0), (1, 19.0), (math.inf, 12.0), (0, 2.0)]:
        given = parameters(lib)
        assert utils.clip_grad_norm_(iter(given), 1.3, order).item() == pytest.approx(expected)
        factor = min(1.3 / (expected + 1e-6), 1)
        assert given[0].grad.tolist() == pytest.approx([3 * factor, -4 * factor])
        assert given[2].grad is None
    given = parameters(lib)
    utils.clip_grad_norm_(given, 100)
    assert given[0].grad.tolist() == [3.0, -4.0]
    assert utils.get_total_norm([p.grad for p in given[:2]]).item() == 13.0
    assert utils.clip_grad_norm_(given[0], 10.0).item() == 5.0
    assert utils.clip_grad_norm_(given[2:], 1.0).item() == 0.0
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_((p for p in []), 1.0)
    assert utils.clip_grad_norm_([], 1.0).item() == 0.0
    utils.clip_grads_with_norm_(given, 2.6, lib.tensor(13.0))
    assert given[0].grad.tolist() == pytest.approx([0.6, -0.8])
    given[0].grad[0] = math.nan
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        utils.clip_grad_norm_(given, 1.0, error_if_nonfinite=True)
    assert math.isnan(utils.clip_grad_norm_(given, 1.0).item())


def test_clipping_by_value(lib):
    given = parameters(lib)
    lib.nn.utils.clip_grad_value_(given, 3.5)
    assert given[0].grad.tolist() == [3.0, -3.5] and given[1].grad.tolist() == [[0, 3.5, 0]]


def test_one_vector(lib):
    model = lib.nn.Linear(2, 2)
    vector = lib.nn.utils.parameters_to_vector(model.parameters())
    assert vector.shape == (6,) and vector.requires_grad
    assert vector[:4].tolist() == model.weight.flatten().tolist()
    weight = model.weight
    lib.nn.utils.vector_to_parameters(lib.arange(6.0), model.parameters())
    assert model.weight is weight and weight.tolist() == [[0, 1], [2, 3]]
    assert model.bias.tolist() == [4, 5]
    with pytest.raises(TypeError, match="expected torch.Tensor, but got"):
        lib.nn.utils.vector_to_parameters([1.0], model.parameters())
