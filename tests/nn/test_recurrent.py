"""Recurrent networks and packed sequences against PyTorch."""

import copy
import inspect
import pickle

import pytest

import wengert

torch = pytest.importorskip("torch")

from nn.both import LIBS, assert_same, compare, derivatives, tensors  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported")


def built(text):
    return lambda lib: eval(f"lib.nn.{text}", {"lib": lib})


NETWORKS = [
    "LSTM(3, 4)",
    "LSTM(3, 4, 2, bidirectional=True, batch_first=True)",
    "LSTM(3, 4, 2, bias=False)",
    "LSTM(3, 4, 2, proj_size=2, bidirectional=True)",
    "LSTM(3, 4, proj_size=2, bias=False)",
    "GRU(3, 4)",
    "GRU(3, 4, 2, bidirectional=True, batch_first=True)",
    "GRU(3, 4, bias=False)",
    "RNN(3, 4)",
    "RNN(3, 4, 2, 'relu', False, True)",
    "RNN(3, 4, 2, nonlinearity='relu', bidirectional=True)",
]


def hidden(lib, module, batch, grad=False):
    """States of another value than zero, for a batch or, with None, for a single sequence."""
    count = module.num_layers * (2 if module.bidirectional else 1)
    middle = () if batch is None else (batch,)
    sizes = [module.proj_size or module.hidden_size, module.hidden_size]
    found = tensors(lib, *[(count, *middle, size) for size in sizes], seed=2, grad=grad)
    return tuple(found) if module.mode == "LSTM" else found[0]


@pytest.mark.parametrize("text", NETWORKS)
def test_networks(text):
    def call(lib, module, x):
        return module(x), module(x[:, :2], hidden(lib, module, 2 if not module.batch_first else 3))

    compare(built(text), call, (3, 3, 3), tolerance=1e-8)


@pytest.mark.parametrize("text", NETWORKS)
def test_packed(text):
    def call(lib, module, x):
        utils = lib.nn.utils.rnn
        packed = utils.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
        output, state = module(packed, hidden(lib, module, 3))
        assert isinstance(output, utils.PackedSequence)
        sorted_one = utils.pack_padded_sequence(x, [4, 4, 2])
        other, last = module(sorted_one)
        return utils.pad_packed_sequence(output)[0], state, other.data, last

    compare(built(text), call, (4, 3, 3), twice=False, tolerance=1e-8)


@pytest.mark.parametrize("text", ["LSTM(3, 4, 2)", "GRU(3, 4, batch_first=True)", "RNN(3, 4)"])
def test_single_sequences(text):
    def call(lib, module, x):
        return module(x), module(x, hidden(lib, module, None))

    compare(built(text), call, (5, 3))


@pytest.mark.parametrize(
    "text",
    ["LSTMCell(3, 4)", "LSTMCell(3, 4, False)", "GRUCell(3, 4)", "GRUCell(3, 4, bias=False)",
     "RNNCell(3, 4)", "RNNCell(3, 4, False, 'relu')"],
)  # fmt: skip
def test_cells(text):
    def call(lib, module, x, h, c):
        state = (h, c) if "LSTM" in text else h
        single = (h[0], c[0]) if "LSTM" in text else h[0]
        return module(x), module(x, state), module(x[0]), module(x[0], single)

    compare(built(text), call, (2, 3), (2, 4), (2, 4))


def test_states_and_long_sequences():
    """Gradients through many steps, into the first state too, in float32."""
    found = []
    for lib in LIBS:
        torch.manual_seed(0)
        values = torch.nn.LSTM(5, 8, 2).state_dict()
        module = lib.nn.LSTM(5, 8, 2)
        module.load_state_dict({k: lib.tensor(v.tolist()) for k, v in values.items()})
        x, h, c = (t.detach().float().requires_grad_() for t in
                   tensors(lib, (30, 4, 5), (2, 4, 8), (2, 4, 8)))  # fmt: skip
        result = module(x, (h, c))
        leaves = [x, h, c, *module.parameters()]
        found.append([result, derivatives(lib, result, leaves, twice=False)])
    assert_same(*found, tolerance=2e-4)


def test_forward_mode_and_transforms():
    for text in ("LSTM(3, 4)", "GRU(3, 4)", "RNN(3, 4)"):
        module = built(text)(wengert).double()
        x, t = tensors(wengert, (4, 3, 3), (4, 3, 3), grad=False)
        output, tangent = wengert.func.jvp(lambda x, m=module: m(x)[0], (x,), (t,))
        total, grad = module(x)[0].sum(), wengert.func.grad(lambda x, m=module: m(x)[0].sum())(x)
        assert_same((grad * t).sum(), tangent.sum())
        assert_same(output.sum(), total)
        mapped = wengert.vmap(lambda x, m=module: m(x)[0], in_dims=1, out_dims=1)(x)
        assert_same(mapped, module(x)[0])
        state = dict(module.named_parameters())

        def loss(parameters, x, m=module):
            return (wengert.func.functional_call(m, parameters, (x,))[0] ** 2).sum()

        each = wengert.vmap(wengert.func.grad(loss), in_dims=(None, 1))(state, x)
        whole = wengert.func.grad(loss)(state, x)
        for name in state:
            assert_same(each[name].sum(0), whole[name])
        compiled = wengert.compile(lambda x, m=module: m(x)[0])
        assert_same(compiled(x), module(x)[0])


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_cells_are_differentiated_to_any_order(name):
    module = getattr(wengert.nn, name)(2, 2).double()
    (x,) = tensors(wengert, (2, 1, 2))
    parameters = [p.detach().requires_grad_() for p in module.parameters()]

    def run(x, *values):
        named = dict(zip(dict(module.named_parameters()), values, strict=True))
        return wengert.func.functional_call(module, named, (x,))[0]

    assert wengert.autograd.gradcheck(run, (x, *parameters), check_forward_ad=True)
    assert wengert.autograd.gradgradcheck(run, (x, *parameters))


def test_dropout_between_layers():
    wengert.manual_seed(0)
    module = wengert.nn.GRU(3, 4, 2, dropout=0.5)
    x = wengert.ones(5, 2, 3)
    assert not wengert.equal(module(x)[0], module(x)[0])
    module.eval()
    assert wengert.equal(module(x)[0], module(x)[0])
    gone = wengert.nn.GRU(3, 4, 2, dropout=1.0)
    gone.load_state_dict(module.state_dict())
    hidden = gone(x)[1]
    assert_same(gone(x * 2)[0], gone(x)[0])  # nothing gets through
    assert wengert.allclose(hidden[0], module(x)[1][0])


@pytest.mark.parametrize(
    "text",
    [
        "lstm(x, (h, h), w4, True, 1, 0.0, False, False, False)",
        "lstm(d, b, (h, h), w4, True, 1, 0.0, False, False)",
        "gru(x, h, w3, True, 1, 0.0, False, False, False)",
        "gru(d, b, h, w3, True, 1, 0.0, False, False)",
        "rnn_tanh(x, h, w1, True, 1, 0.0, False, False, False)",
        "rnn_relu(x, h, w1[:2], False, 1, 0.0, False, False, False)",
        "rnn_tanh(d, b, h, w1, True, 1, 0.0, False, False)",
        "lstm_cell(x[0], (h[0], h[0]), *w4)",
        "gru_cell(x[0], h[0], *w3)",
        "gru_cell(x[0], h[0], *w3[:2])",
        "rnn_tanh_cell(x[0], h[0], *w1)",
        "rnn_relu_cell(x[0], h[0], *w1[:2])",
    ],
)
def test_functions(text):
    found = []
    for lib in LIBS:
        x, h = tensors(lib, (3, 2, 3), (1, 2, 4))
        names = {"lib": lib, "x": x, "h": h, "b": lib.tensor([2, 2, 1]), "d": x.reshape(6, 3)[:5]}
        for gates in (1, 3, 4):
            n = 4 * gates
            names[f"w{gates}"] = tensors(lib, (n, 3), (n, 4), (n,), (n,), seed=gates)
        results = eval(f"lib.{text}", names)
        found.append([results, derivatives(lib, results, [x, h])])
    assert_same(*found)


E1 = "RNN input dtype (.*float64) does not match weight dtype (.*float32)"


@pytest.mark.parametrize(
    "text, kind, phrase",
    [
        ("nn.LSTM(3, 0)", ValueError, "hidden_size must be greater than zero"),
        ("nn.LSTM(0, 3)", ValueError, "input_size must be greater than zero"),
        ("nn.LSTM(3, 4, 0)", ValueError, "num_layers must be greater than zero"),
        ("nn.LSTM(3.0, 4)", TypeError, "input_size should be of type int, got: float"),
        ("nn.LSTM(3, 4, bias=1)", TypeError, "bias should be of type bool, got: int"),
        ("nn.LSTM(3, 4, 2, dropout=2)", ValueError, "dropout should be a number in range"),
        ("nn.LSTM(3, 4, proj_size=4)", ValueError, "proj_size has to be smaller"),
        ("nn.LSTM(3, 4, proj_size=-1)", ValueError, "proj_size should be a positive integer"),
        ("nn.GRU(3, 4, proj_size=2)", ValueError, "only supported for LSTM"),
        ("nn.RNN(3, 4, proj_size=2)", ValueError, "only supported for LSTM"),
        ("nn.RNN(3, 4, 1, 'x')", ValueError, "Unknown nonlinearity 'x'. Select from"),
        ("nn.RNNBase('X', 3, 4)", ValueError, "Unrecognized RNN mode: X"),
        ("nn.RNNCell(3, 4, True, 'x')(lib.ones(2, 3))", RuntimeError, "Unknown nonlinearity: x"),
        ("nn.LSTM(3, 4)(x[0, 0])", ValueError, "LSTM: Expected input to be 2D or 3D, got 1D"),
        ("nn.GRU(3, 4)(x[0, 0])", ValueError, "GRU: Expected input to be 2D or 3D, got 1D"),
        ("nn.RNN(3, 4)(x[0, 0])", ValueError, "RNN: Expected input to be 2D or 3D, got 1D ten"),
        ("nn.LSTM(4, 4)(x)", RuntimeError, "must be equal to input_size. Expected 4, got 3"),
        ("nn.LSTM(3, 4)(x.double())", ValueError, "does not match weight dtype"),
        ("nn.LSTM(3, 4)(x, (h, h[:, :1]))", RuntimeError, "Expected hidden.1. size .1, 2, 4., got"),
        ("nn.GRU(3, 4)(x, h[:, :1])", RuntimeError, "Expected hidden size .1, 2, 4., got"),
        ("nn.LSTM(3, 4)(x, (h[0], h))", RuntimeError, "hx and cx should also be 3-D but got .2-D"),
        ("nn.LSTM(3, 4)(x[0], (h, h))", RuntimeError, "hx and cx should also be 2-D but got .3-D"),
        ("nn.GRU(3, 4)(x, h[0])", RuntimeError, "hx should also be 3-D but got 2-D tensor"),
        ("nn.RNN(3, 4)(x[0], h)", RuntimeError, "hx should also be 2-D but got 3-D tensor"),
        ("nn.LSTM(3, 4)(x[:0])", RuntimeError, "Expected sequence length to be larger than 0"),
        ("nn.LSTMCell(3, 4)(x)", ValueError, "LSTMCell: Expected input to be 1D or 2D, got 3D"),
        ("nn.LSTMCell(4, 4)(x[0])", RuntimeError, "inconsistent input_size: got 3 expected 4"),
        ("nn.GRUCell(3, 4)(x[0], h[0, :1])", RuntimeError, "Input batch size 2 doesn't match"),
        ("nn.GRUCell(3, 5)(x[0], h[0])", RuntimeError, "hidden0 has inconsistent hidden_size"),
        ("nn.GRUCell(3, 4)(x[0], h)", ValueError, "Expected hidden to be 1D or 2D, got 3D"),
        ("gru(x, h, [h] * 3, True, 1, 0.0, False, False, False)", RuntimeError, "incorrect numb"),
        ("lstm_cell(x[0], (h[0],), h[0], h[0])", RuntimeError, "expects two hidden states"),
    ],
)
def test_errors(lib, text, kind, phrase):
    with pytest.raises(kind, match=phrase):
        eval(f"lib.{text}", {"lib": lib, "x": lib.ones(3, 2, 3), "h": lib.zeros(1, 2, 4)})


def test_warns_of_useless_dropout(lib):
    with pytest.warns(UserWarning, match="non-zero dropout expects num_layers greater than 1"):
        lib.nn.GRU(3, 4, dropout=0.5)


def test_attributes():
    for text in NETWORKS:
        ours, theirs = (built(text)(lib) for lib in LIBS)
        public = [{k: v for k, v in vars(m).items() if k[0] != "_"} for m in (ours, theirs)]
        assert public[0] == public[1]
        assert [[w.shape for w in each] for each in ours.all_weights] == [
            [w.shape for w in each] for each in theirs.all_weights
        ]
        assert ours._flat_weights_names == theirs._flat_weights_names
        assert ours.flatten_parameters() is None


def test_initial_values(lib):
    module = lib.nn.LSTM(3, 25, proj_size=4)
    for each in module.parameters():
        assert each.abs().max() <= 0.2 and each.std() > 0.05
    cell = lib.nn.GRUCell(3, 25)
    assert 0.15 < cell.weight_hh.abs().max() <= 0.2
    assert lib.nn.LSTM(3, 4, device="meta", dtype=lib.float64).weight_hh_l0.is_meta


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell", "RNNBase", "RNNCellBase"])
def test_signatures(name):
    ours, theirs = (inspect.signature(getattr(lib.nn, name)) for lib in LIBS)
    assert [(p.name, p.default) for p in ours.parameters.values()] == [
        (p.name, p.default) for p in theirs.parameters.values()
    ]


def test_copies():
    x = wengert.ones(3, 2, 3)
    for text in (*NETWORKS, "LSTMCell(3, 4)"):
        module = built(text)(wengert)
        for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            assert repr(other) == repr(module)
            given = x[0] if "Cell" in text else x
            assert_same(other(given), module(given))


# Packed sequences ---------------------------------------------------------------------------------


def test_packing():
    found = []
    for lib in LIBS:
        utils = lib.nn.utils.rnn
        x, y, z = tensors(lib, (3, 2), (1, 2), (2, 2))
        packed = utils.pack_sequence([x, y, z], enforce_sorted=False)
        results = [
            list(packed),
            list(utils.pack_sequence([x, z, y])),
            list(utils.pack_padded_sequence(x.reshape(1, 3, 2), [2], True)),
            utils.pad_packed_sequence(packed),
            utils.pad_packed_sequence(packed, True, -1.0, 5),
            utils.unpack_sequence(packed),
            utils.pad_sequence([x, y, z]),
            utils.pad_sequence((x, y, z), True, 2.5, "left"),
            utils.unpad_sequence(utils.pad_sequence([x, y, z]), lib.tensor([3, 1, 2])),
            utils.invert_permutation(lib.tensor([2, 0, 1])),
            packed.double().data,
            list(packed.to(lib.float32)),
            packed.is_cuda,
            packed.to(lib.float64) is packed,
        ]
        assert utils.PackedSequence(packed.data, packed.batch_sizes) is not None
        assert utils.PackedSequence((packed.data, packed.batch_sizes)).data is packed.data
        assert utils.invert_permutation(None) is None
        found.append([results, derivatives(lib, results[:9], [x, y, z], twice=False)])
    assert_same(*found)


def test_packed_text(lib):
    packed = lib.nn.utils.rnn.pack_sequence([lib.ones(2), lib.ones(1)])
    assert repr(packed) == (
        "PackedSequence(data=tensor([1., 1., 1.]), batch_sizes=tensor([2, 1]), "
        "sorted_indices=None, unsorted_indices=None)"
    )


@pytest.mark.parametrize(
    "text, kind, phrase",
    [
        ("pack_padded_sequence(x, [3, 4])", RuntimeError, "must be sorted in decreasing order"),
        ("pack_padded_sequence(x, [3, 0])", RuntimeError, "has to be greater than 0, but found"),
        ("pack_padded_sequence(x, [3])", RuntimeError, "equal to batch_size, but got 1 .batch_siz"),
        ("pack_padded_sequence(x, x[0])", RuntimeError, "should be a 1D CPU int64 tensor, but got"),
        ("pad_sequence(3)", RuntimeError, "Expected iterable for input sequences, but got"),
        ("pad_sequence([])", RuntimeError, "received an empty list of sequences"),
        ("pad_sequence([x], padding_side='mid')", RuntimeError, "one of left or right, but got m"),
        ("pad_sequence([x, x[..., :2]])", RuntimeError, "The size of tensor a"),
        ("pad_packed_sequence(p, total_length=2)", ValueError, "at least the length of the long"),
        ("PackedSequence(x[0])", AssertionError, "to be a list or tuple of length 2"),
    ],
)
def test_packing_errors(lib, text, kind, phrase):
    utils = lib.nn.utils.rnn
    packed = utils.pack_sequence([lib.ones(3), lib.ones(2)])
    with pytest.raises(kind, match=phrase):
        eval(f"utils.{text}", {"utils": utils, "x": lib.ones(5, 2, 3), "p": packed})


def test_lengths_beyond_the_input_are_refused():
    with pytest.raises(RuntimeError, match="lengths of at most 5.*but found 9"):
        wengert.nn.utils.rnn.pack_padded_sequence(wengert.ones(5, 2, 3), [9, 2])
