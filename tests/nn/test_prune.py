"""Pruning against PyTorch."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.utils.prune")  # which torch itself does not import

from nn.both import LIBS, assert_same, compare, tensors  # noqa: E402

CALLS = {
    "identity(m, 'weight')": 12,
    "l1_unstructured(m, 'weight', 5)": 7,
    "l1_unstructured(m, 'weight', 0.25)": 9,
    "l1_unstructured(m, 'weight', 0)": 12,
    "ln_structured(m, 'weight', 2, 2, 0)": 6,
    "ln_structured(m, 'weight', 0.5, float('-inf'), -1)": 4,
    "custom_from_mask(m, 'weight', lib.eye(4, 3))": 3,
    "l1_unstructured(u.l1_unstructured(m, 'weight', 3), 'weight', 4)": 5,
    "ln_structured(u.ln_structured(m, 'weight', 1, 2, 0), 'weight', 1, 2, 1)": 6,
    "l1_unstructured(u.ln_structured(m, 'weight', 1, 2, 0), 'weight', 2)": 7,
    "ln_structured(m, 'weight', 1, 2, 0, lib.arange(12.).reshape(4, 3))": 9,
}


@pytest.mark.parametrize("text", CALLS)
def test_pruning(text):
    def build(lib):
        module = lib.nn.Linear(3, 4)
        values = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
        module.weight.data = lib.tensor(values.tolist())
        utils = lib.nn.utils.prune
        pruned = eval(f"u.{text}", {"u": utils, "m": module, "lib": lib})
        assert pruned is module and utils.is_pruned(module)
        assert int(module.weight_mask.sum()) == CALLS[text]
        return module

    compare(build, lambda lib, module, x: (module(x), module.weight), (2, 3))


@pytest.mark.parametrize("text", ["random_unstructured(m, 'weight', 5)",
                                  "random_structured(m, 'weight', 2, 1)"])  # fmt: skip
def test_at_random(lib, text):
    module = lib.nn.Linear(3, 4)
    eval(f"lib.nn.utils.prune.{text}", {"lib": lib, "m": module})
    assert int(module.weight_mask.sum()) == (7 if "uns" in text else 4)
    assert sorted(module.state_dict()) == ["bias", "weight_mask", "weight_orig"]


def test_removing(lib):
    utils = lib.nn.utils.prune
    module = lib.nn.Linear(2, 2)
    original = module.weight
    utils.l1_unstructured(module, "weight", 2)
    container = utils.L1Unstructured.apply(module, "weight", 1)
    assert len(container) == 2 and container[0].amount == 2
    assert [type(each).__name__ for each in container] == ["L1Unstructured"] * 2
    utils.remove(module, "weight")
    assert module.weight is original and int((original == 0).sum()) == 3
    assert not utils.is_pruned(module) and not module._buffers
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        utils.remove(module, "weight")


def test_globally():
    found = []
    for lib in LIBS:
        a, b = lib.nn.Linear(2, 2), lib.nn.Linear(2, 3)
        for module, seed in ((a, 1), (b, 2)):
            (weight,) = tensors(lib, tuple(module.weight.shape), seed=seed, grad=False)
            module.weight.data = weight
        utils = lib.nn.utils.prune
        pairs = [(a, "weight"), (b, "weight")]
        utils.global_unstructured(pairs, utils.L1Unstructured, amount=0.4)
        results = [a.weight, b.weight]
        utils.global_unstructured(pairs, utils.L1Unstructured, amount=2)
        results += [a.weight_mask, b.weight_mask]
        results.append(utils.L1Unstructured(2).prune(b.weight_orig))
        found.append(results)
    assert_same(*found)


@pytest.mark.parametrize(
    "text, kind, phrase",
    [
        ("L1Unstructured('a')", TypeError, "Invalid type for amount: a. Must be int or float"),
        ("L1Unstructured(1.5)", ValueError, "should either be a float in the range .0, 1. or"),
        ("L1Unstructured(-1)", ValueError, "a non-negative integer"),
        ("l1_unstructured(m, 'weight', 99)", ValueError, "should be smaller than the number of"),
        ("ln_structured(m, 'bias', 1, 2, 0)", ValueError, "can only be applied to multidim"),
        ("ln_structured(m, 'weight', 1, 2, 2)", IndexError, "Invalid index 2 for tensor of size"),
        ("custom_from_mask(m, 'weight', lib.ones(2))", AssertionError, "must match self.mask"),
        ("l1_unstructured(m, 'weight', 1, lib.ones(2))", AssertionError, "should have the same"),
        ("global_unstructured(3, u.L1Unstructured)", TypeError, "parameters is not an Iterable"),
        ("global_unstructured([(m, 'weight')], u.LnStructured, amount=1, n=1)", TypeError,
         'Only "unstructured" PRUNING_TYPE supported'),
        ("PruningContainer(3)", (TypeError, AttributeError), ""),
    ],
)
def test_errors(lib, text, kind, phrase):
    utils = lib.nn.utils.prune
    module = lib.nn.Linear(3, 4)
    with pytest.raises(kind, match=phrase or None):
        eval(f"u.{text}", {"u": utils, "m": module, "lib": lib})
    assert "weight" in module._parameters and "bias" in module._parameters
