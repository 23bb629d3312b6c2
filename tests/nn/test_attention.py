"""Attention and transformers against PyTorch: values, derivatives, text, state, errors."""

import copy
import inspect
import pickle

import pytest

import wengert

torch = pytest.importorskip("torch")

from nn.both import LIBS, assert_same, compare, derivatives, pair, tensors  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:enable_nested_tensor is True", "ignore:The PyTorch API of nested tensors"
)


@pytest.fixture(autouse=True)
def twice_differentiable():
    """PyTorch's fused attention has no second derivatives, the one made of operators has."""
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        yield


Q, K, V = (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3)


def attended(lib, shapes, **options):
    leaves = tensors(lib, *shapes)
    given = {name: make(lib) if callable(make) else make for name, make in options.items()}
    result = lib.nn.functional.scaled_dot_product_attention(*leaves, **given)
    return [result, derivatives(lib, [result], leaves)]


@pytest.mark.parametrize(
    "shapes, options",
    [
        ((Q, K, V), {}),
        ((Q, K, V), {"scale": 0.3}),
        ((Q, K, V), {"is_causal": True}),
        ((Q, K, V), {"attn_mask": lambda lib: lib.arange(15).reshape(3, 5) % 4 > 0}),
        ((Q, K, V), {"attn_mask": lambda lib: lib.arange(15).reshape(3, 5) > 4}),  # an empty row
        ((Q, K, V), {"attn_mask": lambda lib: lib.arange(30.0).double().reshape(2, 1, 3, 5)}),
        ((Q, K, V), {"attn_mask": lambda lib: lib.ones(3, 5)}),
        ((Q, K, V), {"dropout_p": 1.0}),
        (((3, 4), (5, 4), (5, 2)), {"is_causal": True}),
        (((1, 6, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)), {"enable_gqa": True}),
        (((2, 3, 4), (1, 3, 4), (1, 3, 4)), {}),
        (((2, 0, 4), (2, 0, 4), (2, 0, 4)), {}),
        (((2, 3, 4), (2, 0, 4), (2, 0, 4)), {}),
        (((2, 3, 0), (2, 3, 0), (2, 3, 2)), {}),
    ],
)
def test_scaled_dot_products(shapes, options):
    assert_same(*(attended(lib, shapes, **options) for lib in LIBS))


def test_half_precision():
    for dtype in ("float16", "bfloat16"):
        results = []
        for lib in LIBS:
            x = tensors(lib, (2, 3, 4), grad=False)[0].to(getattr(lib, dtype))
            found = lib.nn.functional.scaled_dot_product_attention(x, x, x, lib.ones(3, 3))
            assert found.dtype is x.dtype
            results.append(found.double())
        assert_same(*results, tolerance=2e-2)


@pytest.mark.parametrize(
    "text, kind, phrase",
    [
        ("q[0, 0], q, q", RuntimeError, "to all be  at least 2 dimensional, but got query.dim: 1"),
        ("q, q.double(), q", RuntimeError, "query.dtype: float key.dtype: double"),
        ("q, q, q, m.long()", RuntimeError, "attn_mask.dtype: long int and  query.dtype: float"),
        ("q, q, q, m, is_causal=True", RuntimeError, "Explicit attn_mask should not be set"),
        ("q, q, q, dropout_p=1.5", RuntimeError, "has to be between 0 and 1, but got 1.5"),
        ("q, q[..., :3], q", RuntimeError, "size"),
        ("lib.ones(3, 2, 2), q, q, enable_gqa=True", RuntimeError, "must divide the number"),
    ],
)
def test_scaled_dot_product_errors(lib, text, kind, phrase):
    names = {"q": lib.ones(2, 3, 4), "m": lib.zeros(3, 3), "lib": lib}
    with pytest.raises(kind, match=phrase):
        eval(f"lib.nn.functional.scaled_dot_product_attention({text})", names)


def test_a_later_key_that_is_not_a_number_does_not_reach_earlier_queries():
    """In PyTorch that depends on the kernel, which sizes and dimensions decide about."""
    query, value = wengert.ones(1, 1, 4, 2), wengert.arange(8.0).reshape(1, 1, 4, 2)
    key = wengert.ones(1, 1, 4, 2)
    key[0, 0, 3] = float("nan")
    attention = wengert.nn.functional.scaled_dot_product_attention
    out = attention(query, key, value, is_causal=True)
    assert out[0, 0, :3].tolist() == [[0, 1], [1, 2], [2, 3]]
    assert out[0, 0, 3].isnan().all()


def test_in_transforms_and_compiled():
    attention = wengert.nn.functional.scaled_dot_product_attention
    q, k, v = tensors(wengert, (3, 2, 4), (3, 5, 4), (3, 5, 4), grad=False)
    whole = attention(q, k, v)
    assert_same(wengert.vmap(attention)(q, k, v), whole)
    one, tangent = wengert.func.jvp(lambda x: attention(x, k, v), (q,), (wengert.ones_like(q),))
    assert_same(one, whole)
    back = wengert.func.grad(lambda x: attention(x, k, v).sum())(q)
    assert abs(float(back.sum()) - float(tangent.sum())) < 1e-9
    compiled = wengert.compile(lambda q, k, v: attention(q, k, v, is_causal=True))
    assert_same(compiled(q, k, v), attention(q, k, v, is_causal=True))


# Several heads ------------------------------------------------------------------------------------

E = 6
SELF = [(4, 2, E)]
CROSS = [(4, 2, E), (5, 2, E)]
THREE = [(4, 2, E), (5, 2, E), (5, 2, E)]


def heads(text):
    return lambda lib: eval(f"lib.nn.MultiheadAttention({text})", {"lib": lib})


@pytest.mark.parametrize(
    "text, shapes, options",
    [
        ("6, 2", SELF, {}),
        ("6, 3, bias=False", CROSS, {"average_attn_weights": False}),
        ("6, 1, add_bias_kv=True, add_zero_attn=True", THREE, {}),
        ("6, 2, kdim=3, vdim=5", [(4, 2, 6), (5, 2, 3), (5, 2, 5)], {}),
        ("6, 2, kdim=3, vdim=5, bias=False", [(4, 2, 6), (5, 2, 3), (5, 2, 5)],
         {"need_weights": False}),
        ("6, 2, batch_first=True", [(2, 4, 6)], {"need_weights": False}),
        ("6, 2, batch_first=True", [(2, 4, 6), (2, 3, 6)], {}),
        ("6, 2, 0.5", SELF, {}),
        ("6, 2", [(4, 6), (5, 6)], {}),
        ("6, 2", [(4, 6)], {"attn_mask": "lib.ones(2, 4, 4).triu(1).bool()"}),
        ("6, 2", SELF, {"attn_mask": "causal", "is_causal": True, "need_weights": False}),
        ("6, 2", SELF, {"attn_mask": "causal", "is_causal": True}),
        ("6, 2", SELF, {"attn_mask": "lib.ones(4, 4, 4).double().triu(1)"}),
        ("6, 2", SELF, {"key_padding_mask": "lib.tensor([[0, 0, 1, 1], [0, 0, 0, 1]]).bool()"}),
        ("6, 2, add_zero_attn=True", SELF,
         {"key_padding_mask": "lib.tensor([[0, 0, 1, 1], [0, 0, 0, 1]]).bool()",
          "attn_mask": "lib.ones(4, 4).triu(1).bool()", "need_weights": False}),
        ("6, 2, add_bias_kv=True, batch_first=True", [(2, 4, 6)],
         {"key_padding_mask": "lib.tensor([[0, 0, -1., -2], [0, 0, 0, -1]]).double()",
          "attn_mask": "causal"}),
    ],
)  # fmt: skip
def test_heads(text, shapes, options):
    def call(lib, module, *given):
        if "0.5" in text:
            module.eval()
        query, key, value = given if len(given) == 3 else (given[0], given[-1], given[-1])
        causal = lib.nn.Transformer.generate_square_subsequent_mask(4, dtype=lib.float64)
        named = {
            name: eval(value, {"lib": lib, "causal": causal}) if isinstance(value, str) else value
            for name, value in options.items()
        }
        return module(query, key, value, **named)

    compare(heads(text), call, *shapes)


def test_static_keys():
    found = []
    for lib in LIBS:
        q, k, v, w, b = tensors(lib, (3, 2, 4), (4, 5, 2), (4, 5, 2), (12, 4), (12,))
        result = lib.nn.functional.multi_head_attention_forward(
            q, q, q, 4, 2, w, b, None, None, False, 0.0, w[:4], b[:4], static_k=k, static_v=v
        )
        found.append([result, derivatives(lib, result, [q, k, v, w, b])])
    assert_same(*found)


@pytest.mark.parametrize(
    "text, kind, phrase",
    [
        ("lib.nn.MultiheadAttention(5, 2)", AssertionError, "must be divisible by num_heads"),
        ("lib.nn.MultiheadAttention(0, 2)", ValueError, "must be greater than 0, got embed_dim=0"),
        ("m(x[0, 0], x, x)", AssertionError, "should be unbatched 2D or batched 3D tensor but"),
        ("m(x, x[0], x)", AssertionError, "For batched .3-D. `query`, expected `key` and `value`"),
        ("m(x[0], x[0], x)", AssertionError, "For unbatched .2-D. `query`, expected `key`"),
        ("m(x, x, x, x)", AssertionError, "`key_padding_mask` to be `None` or 2-D but found 3-D"),
        ("m(x, x, x, attn_mask=x[0, 0])", AssertionError, "`None`, 2-D or 3-D but found 1-D"),
        ("m(x, x, x, attn_mask=x[0])", RuntimeError, "shape of the 2D attn_mask is"),
        ("m(x, x, x, attn_mask=x)", RuntimeError, "shape of the 3D attn_mask is"),
        ("m(x, x, x, attn_mask=x.long())", AssertionError, "only bool and floating types of attn"),
        ("m(x, x, x, is_causal=True)", RuntimeError, "Need attn_mask if specifying the is_causal"),
        ("m(x, x[:2], x)", AssertionError, "does not match value shape"),
        ("m(x[..., :3], x, x)", AssertionError, "expecting embedding dimension of 4, but got 3"),
        ("m(x, x, x, x[:2, 0])", AssertionError, "key_padded_mask.shape.1. to be 3, but got 4"),
    ],
)
def test_heads_errors(lib, text, kind, phrase):
    names = {"lib": lib, "m": lib.nn.MultiheadAttention(4, 2), "x": lib.ones(3, 2, 4)}
    with pytest.raises(kind, match=phrase):
        eval(text, names)


def test_masks_of_different_types_warn(lib):
    x = lib.ones(3, 2, 4)
    with pytest.warns(UserWarning, match="mismatched key_padding_mask and attn_mask"):
        lib.nn.MultiheadAttention(4, 2)(
            x, x, x, lib.zeros(2, 3).bool(), attn_mask=lib.zeros(3, 3)
        )


def test_merged_masks():
    found = []
    for lib in LIBS:
        layer = lib.nn.MultiheadAttention(4, 2)
        x = lib.ones(2, 3, 4)
        mask, padding = lib.ones(3, 3).triu(1), lib.ones(2, 3)
        found.append([
            layer.merge_masks(None, None, x),
            layer.merge_masks(None, padding, x),
            layer.merge_masks(mask, None, x),
            layer.merge_masks(mask, padding, x),
            layer.merge_masks(mask.expand(4, 3, 3), padding, x),
        ])  # fmt: skip
    assert_same(*found)


def test_initial_values(lib):
    layer = lib.nn.MultiheadAttention(40, 4, add_bias_kv=True)
    assert layer.in_proj_bias.abs().sum() == 0 and layer.out_proj.bias.abs().sum() == 0
    bound = (6 / (40 + 120)) ** 0.5
    assert 0.9 * bound < layer.in_proj_weight.abs().max() <= bound
    assert layer.bias_k.shape == (1, 1, 40) and layer.bias_k.std() > 0
    assert lib.nn.MultiheadAttention(4, 2, device="meta").in_proj_weight.is_meta


# Transformers -------------------------------------------------------------------------------------

SMALL = "dim_feedforward=5, dropout=0.0"


@pytest.mark.parametrize(
    "text, mask",
    [
        (f"4, 2, {SMALL}", None),
        (f"4, 2, {SMALL}, activation='gelu', norm_first=True, batch_first=True", "causal"),
        (f"4, 1, {SMALL}, activation=lib.tanh, bias=False, layer_norm_eps=1e-3", "bool"),
        (f"4, 2, {SMALL}, activation=lib.nn.ReLU(), batch_first=True", "causal"),
    ],
)
@pytest.mark.parametrize("kind", ["Encoder", "Decoder"])
def test_layers(kind, text, mask):
    def build(lib):
        return eval(f"lib.nn.Transformer{kind}Layer({text})", {"lib": lib})

    def call(lib, module, x, memory):
        causal = lib.nn.Transformer.generate_square_subsequent_mask(3, dtype=lib.float64)
        chosen = {None: None, "causal": causal, "bool": causal < 0}[mask]
        if kind == "Encoder":
            return module(x, chosen, is_causal=mask == "causal")
        return module(x, memory, chosen, tgt_is_causal=mask == "causal")

    compare(build, call, (3, 3, 4), (3, 3, 4))


@pytest.mark.parametrize("batch_first", [True, False])
def test_transformer(batch_first):
    def build(lib):
        return lib.nn.Transformer(4, 2, 2, 1, 5, 0.0, batch_first=batch_first)

    def call(lib, module, src, tgt):
        mask = module.generate_square_subsequent_mask(3, dtype=lib.float64)
        padding = lib.tensor([[False, False, True], [False, False, False], [False, True, True]])
        return module(src, tgt, tgt_mask=mask, src_key_padding_mask=padding), module(
            src, tgt, src_mask=mask, tgt_mask=mask, memory_mask=mask > 1
        )

    compare(build, call, (3, 3, 4), (3, 3, 4), tolerance=1e-8)


@pytest.mark.parametrize("norm", [True, False])
def test_padding_in_evaluation_is_zero(norm):
    def build(lib):
        layer = lib.nn.TransformerEncoderLayer(4, 2, 5, batch_first=True)
        return lib.nn.TransformerEncoder(layer, 2, lib.nn.LayerNorm(4) if norm else None)

    found = []
    for lib, module in zip(LIBS, pair(build), strict=True):
        module.eval()
        (x,) = tensors(lib, (2, 3, 4))
        padding = lib.tensor([[False, False, True], [False, False, False]])
        with lib.no_grad():
            results = [module(x, src_key_padding_mask=padding), module(x, padding.new_zeros(3, 3))]
        results += [module(x, src_key_padding_mask=padding), module(x)]
        found.append(results)
    assert_same(*found)


def test_warns_where_padding_is_computed(lib):
    layer = lib.nn.TransformerEncoderLayer(4, 2, 5)
    with pytest.warns(UserWarning, match="self_attn.batch_first was not True"):
        stack = lib.nn.TransformerEncoder(layer, 1)
    assert not stack.use_nested_tensor and stack.enable_nested_tensor


@pytest.mark.parametrize(
    "text, kind, phrase",
    [
        ("lib.nn.TransformerEncoderLayer(4, 2, activation='tanh')", RuntimeError, "relu/gelu"),
        ("m(x, x[:, :1])", RuntimeError, "the batch number of src and tgt must be equal"),
        ("m(x[..., :3], x)", RuntimeError, "the feature number of src and tgt must be equal"),
    ],
)
def test_transformer_errors(lib, text, kind, phrase):
    names = {"lib": lib, "m": lib.nn.Transformer(4, 2, 1, 1, 5), "x": lib.ones(3, 2, 4)}
    with pytest.raises(kind, match=phrase):
        eval(text, names)


@pytest.mark.parametrize(
    "name", ["MultiheadAttention", "Transformer", "TransformerEncoder", "TransformerDecoder",
             "TransformerEncoderLayer", "TransformerDecoderLayer"]
)  # fmt: skip
def test_signatures(name):
    for find in (lambda cls: cls, lambda cls: cls.forward):
        ours, theirs = (inspect.signature(find(getattr(lib.nn, name))) for lib in LIBS)
        assert list(ours.parameters) == list(theirs.parameters)
        for one, other in zip(ours.parameters.values(), theirs.parameters.values(), strict=True):
            assert one.default == other.default or one.name == "activation"


def test_copies():
    layer = wengert.nn.Transformer(4, 2, 1, 1, 5)
    x = wengert.ones(3, 2, 4)
    layer.eval()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert repr(other) == repr(layer)
        assert_same(other(x, x), layer(x, x))


def test_trains_with_dropout():
    wengert.manual_seed(0)
    layer = wengert.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5)
    x = wengert.ones(3, 2, 4)
    assert not wengert.equal(layer(x), layer(x))
    layer(x).sum().backward()
    assert all(each.grad is not None for each in layer.parameters())
