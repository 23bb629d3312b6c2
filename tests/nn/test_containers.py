"""Sequential, lists and dictionaries of modules and of parameters."""

import copy
import pickle
from collections import OrderedDict

import pytest


def test_sequential(lib):
    nn = lib.nn
    a, b, c = nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)
    model = nn.Sequential(a, b)
    assert len(model) == 2 and list(model) == [a, b] and model[-1] is b
    assert model.append(c) is model and model[2] is c
    assert isinstance(model[:2], nn.Sequential) and list(model[:2]) == [a, b]
    assert model(lib.ones(4, 2)).shape == (4, 1)
    model[1] = nn.Tanh()
    assert repr(model[1]) == "Tanh()"
    assert model.insert(1, b) is model and list(model._modules) == ["0", "1", "2", "3"]
    assert model.pop(1) is b and len(model) == 3
    del model[0]
    assert list(model._modules) == ["0", "1"] and model[1] is c
    del model[0:1]
    assert list(model) == [c]
    assert model.extend([a, b]) is model and len(model) == 3
    assert list(model + nn.Sequential(a)) == [c, a, b, a]
    model += nn.Sequential(b)
    assert len(model) == 4 and len(model * 2) == len(2 * model) == 8
    model *= 2
    assert len(model) == 8
    named = nn.Sequential(OrderedDict(first=a, second=b))
    assert named.second is b and list(named[1:]._modules) == ["second"]
    assert not any(name.isdigit() for name in dir(model))
    for wrong, kind, phrase in [
        (lambda: model[9], IndexError, "index 9 is out of range"),
        (lambda: model + a, ValueError, "supports only objects of Sequential class"),
        (lambda: model * 0, ValueError, "Non-positive multiplication factor 0"),
        (lambda: model * 1.5, TypeError, "unsupported operand type"),
        (lambda: model.insert(20, a), IndexError, "Index out of range: 20"),
        (lambda: model.insert(0, 1), AssertionError, "module should be of type"),
        (lambda: nn.Sequential(1), TypeError, "int is not a Module subclass"),
    ]:
        with pytest.raises(kind, match=phrase):
            wrong()


def test_module_list(lib):
    nn = lib.nn
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    assert len(layers) == 3 and layers[-1] is layers[2]
    assert isinstance(layers[:2], nn.ModuleList) and len(layers[1:]) == 2
    layers.insert(1, nn.ReLU())
    assert [type(layer).__name__ for layer in layers] == ["Linear", "ReLU", "Linear", "Linear"]
    assert repr(layers) == (
        "ModuleList(\n"
        "  (0): Linear(in_features=2, out_features=2, bias=True)\n"
        "  (1): ReLU()\n"
        "  (2-3): 2 x Linear(in_features=2, out_features=2, bias=True)\n"
        ")"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"
    layers[0] = nn.Tanh()
    layers += [nn.Tanh()]
    assert layers.append(nn.ReLU()) is layers and len(layers) == 6
    del layers[1:3]
    assert list(layers._modules) == ["0", "1", "2", "3"]
    popped = layers.pop(0)
    assert repr(popped) == "Tanh()" and len(layers) == 3
    assert len(layers + [popped]) == 4
    assert list(layers.state_dict()) == ["0.weight", "0.bias"]
    with pytest.raises(IndexError, match="index 5 is out of range"):
        layers[5]
    with pytest.raises(TypeError, match="should be called with an iterable, but got int"):
        layers.extend(1)
    with pytest.raises(NotImplementedError, match="missing the required"):
        layers(1)


def test_module_dict(lib):
    nn = lib.nn
    table = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Linear(1, 1)})
    assert list(table) == list(table.keys()) == ["b", "a"] and len(table) == 2
    table["c"] = nn.Tanh()
    assert "c" in table and repr(table["c"]) == "Tanh()"
    table.update([["d", nn.Identity()]])
    assert [name for name, _ in table.items()] == ["b", "a", "c", "d"]
    assert repr(table.pop("d")) == "Identity()"
    del table["b"]
    assert [repr(each) for each in table.values()][1:] == ["Tanh()"]
    assert repr(nn.ModuleDict({"x": nn.ReLU()})) == "ModuleDict(\n  (x): ReLU()\n)"
    other = nn.ModuleDict(table)
    assert other["a"] is table["a"]
    table.clear()
    assert len(table) == 0 and len(other) == 2
    for wrong, kind, phrase in [
        (lambda: table.update(1), TypeError, "iterable of key/value pairs, but got int"),
        (lambda: table.update([1]), TypeError, "element #0 should be Iterable; is ?int"),
        (lambda: table.update([("a",)]), ValueError, "element #0 has length 1; 2 is required"),
        (lambda: table.update({"a": 1}), TypeError, "int is not a Module subclass"),
        (lambda: table["absent"], KeyError, "absent"),
    ]:
        with pytest.raises(kind, match=phrase):
            wrong()


def test_parameter_list(lib):
    nn = lib.nn
    values = nn.ParameterList([lib.ones(2), nn.Parameter(lib.zeros(3, 2)), "text"])
    assert len(values) == 3 and isinstance(values[0], nn.Parameter) and values[2] == "text"
    assert list(values.state_dict()) == ["0", "1"]
    assert repr(values).replace("wengert.", "torch.") == (
        "ParameterList(\n"
        "    (0): Parameter containing: [torch.float32 of size 2]\n"
        "    (1): Parameter containing: [torch.float32 of size 3x2]\n"
        "    (2): Object of type: str\n"
        ")"
    )
    assert values.append(lib.ones(1)) is values and values[-1].shape == (1,)
    assert len(values[:2]) == 2 and isinstance(values[:2], nn.ParameterList)
    values[2] = lib.ones(4)
    values += [lib.ones(5)]
    assert [p.shape[0] for p in values] == [2, 3, 4, 1, 5]
    for other in (copy.deepcopy(values), pickle.loads(pickle.dumps(values))):
        assert len(other) == 5 and other[4].tolist() == [1.0] * 5
    with pytest.raises(IndexError, match="index 7 is out of range"):
        values[7]
    with pytest.raises(TypeError, match="should be called with an iterable, but got int"):
        values.extend(1)
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        values(1)


def test_parameter_dict(lib):
    nn = lib.nn
    table = nn.ParameterDict({"b": lib.ones(2), "a": nn.Parameter(lib.ones(1)), "n": 3})
    order = list(table)
    assert sorted(order) == ["a", "b", "n"] and len(table) == 3 and "a" in table
    assert list(reversed(table)) == order[::-1] and list(table.keys()) == order
    assert isinstance(table["b"], nn.Parameter) and table["n"] == 3
    assert repr(nn.ParameterDict({"w": lib.ones(2, 3), "k": 1})).replace("wengert.", "torch.") in (
        "ParameterDict(\n"
        "    (k): Object of type: int\n"
        "    (w): Parameter containing: [torch.FloatTensor of size 2x3]\n"
        ")",
        "ParameterDict(\n"
        "    (w): Parameter containing: [torch.FloatTensor of size 2x3]\n"
        "    (k): Object of type: int\n"
        ")",
    )
    table["c"] = lib.zeros(3)
    assert table.get("absent", 5) == 5 and table.get("c").shape == (3,)
    assert table.setdefault("d", lib.ones(4)).shape == (4,)
    assert table.setdefault("d", None).shape == (4,)
    assert table.popitem()[0] == "d" and table.pop("n") == 3
    del table["c"]
    copied = table.copy()
    assert copied["a"] is table["a"] and sorted(copied) == ["a", "b"]
    merged = table | nn.ParameterDict({"z": lib.ones(1)})
    assert sorted(merged) == ["a", "b", "z"]
    merged |= nn.ParameterDict({"y": lib.ones(1)})
    assert sorted(name for name, _ in merged.items()) == ["a", "b", "y", "z"]
    assert sorted(merged.fromkeys(["p", "q"])) == ["p", "q"]
    assert len(list(merged.values())) == 4
    assert sorted(merged.state_dict()) == ["a", "b", "y", "z"]
    merged.clear()
    assert len(merged) == 0 and not list(merged.parameters())
    with pytest.raises(TypeError, match="cannot be used as a key as it is not a string"):
        table[1]
    with pytest.raises(RuntimeError, match="ParameterDict should not be called"):
        table(1)
