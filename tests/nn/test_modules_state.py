"""Saving the state of modules into dictionaries and loading it."""

from collections import OrderedDict

import pytest


def network(lib):
    return lib.nn.Sequential(
        OrderedDict(first=lib.nn.Linear(2, 3), second=lib.nn.Linear(3, 2, bias=False))
    )


def test_state_dict(lib):
    model = network(lib)
    state = model.state_dict()
    assert type(state) is OrderedDict
    assert list(state) == ["first.weight", "first.bias", "second.weight"]
    assert list(state._metadata) == ["", "first", "second"]
    assert state._metadata["first"] == {"version": 1}
    assert not state["first.weight"].requires_grad
    assert state["first.weight"].data_ptr() == model.first.weight.data_ptr()
    assert model.state_dict(keep_vars=True)["first.weight"] is model.first.weight
    assert list(model.state_dict(prefix="net."))[0] == "net.first.weight"
    given = {}
    assert model.state_dict(destination=given) is given and len(given) == 3
    with pytest.warns(FutureWarning, match="Positional args"):
        assert model.state_dict(given, "p.") is given
    assert "p.first.bias" in given


def test_loading(lib):
    source, target = network(lib), network(lib)
    weight = target.first.weight
    assert repr(target.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    assert target.first.weight is weight
    assert weight.tolist() == source.first.weight.tolist()
    state = source.state_dict()
    del state["first.bias"]
    state["extra"] = lib.ones(1)
    state["third.x"] = lib.ones(1)
    keys = target.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["first.bias"]
    assert keys.unexpected_keys == ["extra", "third.x"]
    assert repr(keys).startswith("_IncompatibleKeys(missing_keys=['first.bias'], unexpected")
    with pytest.raises(RuntimeError) as error:
        target.load_state_dict(state)
    assert str(error.value) == (
        "Error(s) in loading state_dict for Sequential:\n\t"
        'Missing key(s) in state_dict: "first.bias". \n\t'
        'Unexpected key(s) in state_dict: "extra", "third.x". '
    )


def test_wrong_values(lib):
    model = network(lib)
    state = model.state_dict()
    state["first.weight"] = lib.ones(3, 3)
    state["first.bias"] = 5
    with pytest.raises(RuntimeError) as error:
        model.load_state_dict(state, strict=False)
    text = str(error.value)
    assert (
        f"size mismatch for first.weight: copying a param with shape {lib.Size([3, 3])} from "
        f"checkpoint, the shape in current model is {lib.Size([3, 2])}."
    ) in text
    assert (
        'While copying the parameter named "first.bias", expected torch.Tensor or Tensor-like '
        "object from checkpoint but received <class 'int'>"
    ) in text
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'list'>"):
        model.load_state_dict([])


def test_a_scalar_is_loaded_from_one_element(lib):
    model = lib.nn.Module()
    model.register_buffer("count", lib.tensor(0))
    model.load_state_dict({"count": lib.tensor([7])})
    assert model.count.item() == 7 and model.count.shape == ()


def test_assigning(lib):
    model = network(lib)
    model.second.weight.requires_grad_(False)
    model.register_buffer("b", lib.ones(1))
    state = {name: lib.zeros(t.shape, dtype=lib.float64) for name, t in model.state_dict().items()}
    given = state["first.bias"] = lib.nn.Parameter(state["first.bias"])
    model.load_state_dict(state, assign=True)
    assert model.first.bias is given and model.b is state["b"]
    assert model.first.weight.dtype == lib.float64
    assert isinstance(model.first.weight, lib.nn.Parameter) and model.first.weight.requires_grad
    assert not model.second.weight.requires_grad


def test_loading_into_meta(lib):
    real, meta = lib.nn.Linear(2, 2), lib.nn.Linear(2, 2, device="meta")
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter"):
        meta.load_state_dict(real.state_dict())
    assert meta.weight.is_meta
    meta.load_state_dict(real.state_dict(), assign=True)
    assert not meta.weight.is_meta and meta.weight.requires_grad


def test_extra_state(lib):
    class Counted(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 3

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    outer = lib.nn.Sequential(Counted())
    state = outer.state_dict()
    assert state == {"0._extra_state": {"count": 3}}
    outer[0].count = 0
    outer.load_state_dict(state)
    assert outer[0].count == 3
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0._extra_state"'):
        outer.load_state_dict({})
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "_extra_state"'):
        lib.nn.Identity().load_state_dict({"_extra_state": 1})


def test_saving_hooks(lib):
    model = network(lib)
    seen = []
    handles = [
        model.first.register_state_dict_pre_hook(
            lambda module, prefix, keep: seen.append(("pre", type(module).__name__, prefix, keep))
        ),
        model.first.register_state_dict_post_hook(
            lambda module, state, prefix, metadata: state.update({prefix + "added": 1})
        ),
    ]
    state = model.state_dict()
    assert seen == [("pre", "Linear", "first.", False)] and state["first.added"] == 1
    for handle in handles:
        handle.remove()
    assert "first.added" not in model.state_dict() and len(seen) == 1
    model._register_state_dict_hook(lambda module, state, prefix, metadata: {"only": prefix})
    assert model.state_dict() == {"only": ""}
    other = network(lib)
    other.register_state_dict_post_hook(lambda module, state, prefix, metadata: state)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        other.state_dict()


def test_loading_hooks(lib):
    model, seen = network(lib), []

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        seen.append((type(module).__name__, prefix, strict))
        state[prefix + "weight"] = state.pop(prefix + "kernel")

    def forgive(module, keys):
        seen.append(sorted(keys.missing_keys))
        keys.missing_keys.clear()

    state = model.state_dict()
    state["first.kernel"] = state.pop("first.weight") + 1
    del state["first.bias"]
    handle = model.first.register_load_state_dict_pre_hook(rename)
    model.register_load_state_dict_post_hook(forgive)
    expected = state["first.kernel"].tolist()
    model.load_state_dict(state)
    assert seen == [("Linear", "first.", True), ["first.bias"]]
    assert model.first.weight.tolist() == expected
    handle.remove()
    plain = network(lib)
    plain._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append(prefix))
    plain.load_state_dict(plain.state_dict())
    assert seen[-1] == ""
    plain.register_load_state_dict_post_hook(lambda module, keys: keys)
    with pytest.raises(AssertionError, match="are not expected to return new values"):
        plain.load_state_dict(plain.state_dict())


def test_own_way_of_loading(lib):
    """A class may override what loads and saves its own part."""

    class Shifted(lib.nn.Module):
        _version = 2

        def __init__(self):
            super().__init__()
            self.value = lib.nn.Parameter(lib.zeros(1))

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            if local_metadata.get("version", 1) < 2:
                state_dict[prefix + "value"] = state_dict[prefix + "value"] + 1
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    model = Shifted()
    state = model.state_dict()
    assert state._metadata[""] == {"version": 2}
    model.load_state_dict(state)
    assert model.value.item() == 0
    state._metadata[""] = {"version": 1}
    model.load_state_dict(state)
    assert model.value.item() == 1 and state["value"].item() == 1
    assert state._metadata[""] == {"version": 1}
