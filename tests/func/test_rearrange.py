"""`rearrange`: patterns with names for the dimensions."""

import pytest

import wengert


@pytest.mark.parametrize(
    ("pattern", "lengths", "shape"),
    [
        ("a b c -> c b a", {}, (4, 3, 2)),
        ("a b c -> (a b) c", {}, (6, 4)),
        ("a b c -> a (b c)", {}, (2, 12)),
        ("a b c->(a  b c)", {}, (24,)),
        ("(a d) b c -> d a b c", {"d": 2}, (2, 1, 3, 4)),
        ("a b (c d) -> (a d) b c", {"c": 2}, (4, 3, 2)),
        ("a b (c d) -> a b c d", {"c": 2, "d": 2}, (2, 3, 2, 2)),
        ("... c -> c ...", {}, (4, 2, 3)),
        ("a ... -> ... a", {}, (3, 4, 2)),
        ("... -> (...)", {}, (24,)),
        ("a ... -> (... a)", {}, (24,)),
        ("a b c -> a 1 (b c)", {}, (2, 1, 12)),
        ("a b c -> b () a c", {}, (3, 1, 2, 4)),
        ("a b c ... -> a b c ...", {}, (2, 3, 4)),
    ],
)
def test_patterns(lib, pattern, lengths, shape):
    x = lib.arange(24.0).reshape(2, 3, 4)
    found = lib.func.rearrange(x, pattern, **lengths)
    assert tuple(found.shape) == shape
    assert sorted(found.reshape(-1).tolist()) == x.reshape(-1).tolist()


def test_order_of_elements(lib):
    x = lib.arange(24.0).reshape(2, 3, 4)
    found = lib.func.rearrange(x, "a b (c d) -> (a d) b c", c=2)
    assert found.tolist() == x.reshape(2, 3, 2, 2).permute(0, 3, 1, 2).reshape(4, 3, 2).tolist()
    found = lib.func.rearrange(x, "a b c -> (c a) b")
    assert found.tolist() == x.permute(2, 0, 1).reshape(8, 3).tolist()


def test_lists_are_stacked(lib):
    parts = [lib.zeros(2, 3), lib.ones(2, 3)]
    assert tuple(lib.func.rearrange(parts, "n a b -> b n a").shape) == (3, 2, 2)


def test_dimensions_of_length_one(lib):
    assert tuple(lib.func.rearrange(lib.ones(1, 2), "1 a -> a").shape) == (2,)
    assert tuple(lib.func.rearrange(lib.ones(1, 2), "() a -> a").shape) == (2,)


def test_transforms():
    x = wengert.arange(6.0).reshape(2, 3)
    mapped = wengert.vmap(lambda x: wengert.func.rearrange(x, "(a b) -> b a", a=3))(x)
    assert tuple(mapped.shape) == (2, 1, 3)
    slope = wengert.func.grad(lambda x: (wengert.func.rearrange(x, "a b -> b a") ** 2).sum())(x)
    assert slope.tolist() == (2 * x).tolist()


@pytest.mark.parametrize(
    ("pattern", "lengths", "message"),
    [
        ("a b c", {}, "single '->' separator"),
        ("a b c -> a b c -> c", {}, "single '->' separator"),
        ("a b c -> a b", {}, "Identifiers only on one side"),
        ("a b c -> a b d", {}, "Identifiers only on one side"),
        ("a b -> b a", {}, "Number of dimensions in pattern \\(2\\) must be equal"),
        ("a a c -> a c", {}, "duplicate dimension 'a'"),
        ("a b c -> a b c c", {}, "duplicate dimension 'c'"),
        ("a b c -> a b c", {"z": 2}, "not found in rearrange expression"),
        ("a b c -> (a (b c))", {}, "Axis composition is one-level"),
        ("a b c -> a (b c", {}, "Imbalanced parentheses"),
        ("... ... -> ...", {}, "only one ellipsis"),
        ("a b c -> ... c", {}, "Ellipsis found in right side, but not left"),
        ("(...) -> ...", {}, "Ellipsis is parenthesis in the left side"),
        ("a b 2 -> a b", {}, "unnamed axes of size 1"),
        ("_a b c -> b c _a", {}, "Invalid axis identifier: _a"),
        ("1x b c -> b c 1x", {}, "Invalid axis identifier: 1x"),
        ("a b c -> a b* c", {}, "Unknown character '\\*'"),
        ("a.b c d -> c d", {}, "dots only inside ellipsis"),
    ],
)
def test_wrong_patterns(lib, pattern, lengths, message):
    with pytest.raises(ValueError, match=message):
        lib.func.rearrange(lib.zeros(2, 3, 4), pattern, **lengths)


@pytest.mark.parametrize(
    ("pattern", "lengths", "message"),
    [
        ("a (b d) c -> a b d c", {}, "cannot infer the sizes of two dimensions at once"),
        ("a (b d) c -> a b d c", {"b": 2}, "does not evenly fit into larger dimension"),
        ("a b c -> a b c", {"a": 3}, "sizes do not match"),
        ("1 b c -> b c", {}, "sizes do not match"),
        ("a b c -> a b c)", {}, "Imbalanced parentheses"),
    ],
)
def test_what_does_not_fit(pattern, lengths, message):
    with pytest.raises(ValueError, match=message):
        wengert.func.rearrange(wengert.zeros(2, 3, 4), pattern, **lengths)
