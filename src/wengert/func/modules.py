"""Models as functions of their parameters: `functional_call` and `stack_module_state`.

A module is anything that can be called and has the methods `named_parameters` and `named_buffers`,
whose names are paths of attributes ("layers.0.weight").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..core.tensor import Tensor
from ..operators.joining import stack


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    `parameter_and_buffer_dicts` maps names to tensors, in one dictionary or in several. `args` is
    the tuple of positional arguments, or the one argument. With `tie_weights`, parameters that are
    one and the same tensor in the module are replaced together; with `strict`, every parameter and
    buffer must be given, and no other name. The module is as before when the call has ended; a
    buffer that it has replaced meanwhile is replaced in the dictionary, if that is only one.
    """
    _check_module(module, "functional_call")
    given = _merged(parameter_and_buffer_dicts)
    present = _named(module)
    if tie_weights:
        given = _with_ties(given, present)
    if strict:
        _check_names(module, given, present)
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _replaced(module, given) as left:
        result = module(*args, **(kwargs or {}))
    if isinstance(parameter_and_buffer_dicts, dict):
        for name in parameter_and_buffer_dicts:
            parameter_and_buffer_dicts[name] = left[name]
    return result


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of alike models, stacked, for `vmap` over the models.

    Returns two dictionaries by name; stacked parameters are leaves that require grad as those of
    the models do.

    >>> import wengert
    >>> class Scale:
    ...     def __init__(self, factor):
    ...         self.factor = wengert.tensor(factor, requires_grad=True)
    ...     def named_parameters(self):
    ...         return [("factor", self.factor)]
    ...     def named_buffers(self):
    ...         return []
    ...     def __call__(self, x):
    ...         return self.factor * x
    >>> models = [Scale(1.0), Scale(2.0)]
    >>> parameters, buffers = wengert.func.stack_module_state(models)
    >>> def call(parameters, x):
    ...     return wengert.func.functional_call(models[0], parameters, x)
    >>> wengert.vmap(call, in_dims=(0, None))(parameters, wengert.tensor(3.0))
    tensor([3., 6.], grad_fn=<MulBackward0>)
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    for model in models:
        _check_module(model, "stack_module_state")
    if not (
        all(getattr(model, "training", False) for model in models)
        or not any(getattr(model, "training", False) for model in models)
    ):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return _stacked(parameters), _stacked(buffers)


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let all batch norms in a module, which names its parts by `modules`, keep no statistics.

    Running statistics are changed in place, which `vmap` over examples does not allow. Returns the
    module.
    """
    if not callable(getattr(root, "modules", None)):
        raise TypeError(
            f"replace_all_batch_norm_modules_: a module has modules(), {type(root).__name__} has "
            "not"
        )
    for module in root.modules():
        if any(kind.__name__ == "_BatchNorm" for kind in type(module).__mro__):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def _stacked(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    result = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        flags = {t.requires_grad for t in tensors}
        if len(flags) > 1:
            raise RuntimeError(
                f"Expected {name} from each model to have the same .requires_grad"
            )
        result[name] = stack([t.detach() for t in tensors])
        if flags == {True}:
            result[name].requires_grad_()
    return result


def _check_module(module: Any, api: str) -> None:
    missing = [
        name
        for name in ("named_parameters", "named_buffers", "__call__")
        if not callable(getattr(module, name, None))
    ]
    if missing:
        raise TypeError(
            f"{api}: a module is a callable with named_parameters() and named_buffers(); "
            f"{type(module).__name__} has no {', '.join(missing)}"
        )


def _merged(dicts: Any) -> dict[str, Tensor]:
    """One dictionary from one or several, whose names must differ."""
    if isinstance(dicts, Mapping):
        dicts = (dicts,)
    if not isinstance(dicts, Sequence):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    merged: dict[str, Tensor] = {}
    for each in dicts:
        if not isinstance(each, Mapping):
            raise ValueError(
                "Expected all elements of parameter_and_buffer_dicts to be dictionaries, but got "
                f"{type(each)}"
            )
        repeated = sorted(set(merged) & set(each))
        if repeated:
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
                "ambiguous"
            )
        merged.update(each)
    for name, value in merged.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}: {value!r} is not an instance of wengert.Tensor")
    return merged


def _named(module: Any) -> dict[str, Tensor]:
    """All names of parameters and buffers, those of shared ones included where the module tells."""
    found: dict[str, Tensor] = {}
    for method in (module.named_parameters, module.named_buffers):
        try:
            found.update(method(remove_duplicate=False))
        except TypeError:
            found.update(method())
    return found


def _with_ties(given: dict[str, Tensor], present: dict[str, Tensor]) -> dict[str, Tensor]:
    """The given tensors under all names that the tensors they replace have in the module."""
    names: dict[int, list[str]] = {}
    for name, t in present.items():
        names.setdefault(id(t), []).append(name)
    tied = dict(given)
    for group in names.values():
        values = [given[name] for name in group if name in given]
        if len(group) < 2 or not values:
            continue
        if any(value is not values[0] for value in values):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(group)}, which are tied. "
                "Consider using tie_weights=False"
            )
        tied.update(dict.fromkeys(group, values[0]))
    return tied


def _check_names(module: Any, given: dict[str, Tensor], present: dict[str, Tensor]) -> None:
    missing = sorted(set(present) - set(given))
    unexpected = sorted(set(given) - set(present))
    if not missing and not unexpected:
        return
    text = f"Error(s) in reparametrizing for {type(module).__name__}:"
    if unexpected:
        text += f"\n\tUnexpected key(s): {', '.join(unexpected)}."
    if missing:
        text += f"\n\tMissing key(s): {', '.join(missing)}."
    raise RuntimeError(text)


@contextmanager
def _replaced(module: Any, given: dict[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """The module with other tensors as its attributes, for the time of a block.

    Yields a dictionary that in the end holds what the module has left in their places.
    """
    places = {name: _place(module, name) for name in given}
    before = {name: _get(*place) for name, place in places.items()}
    left: dict[str, Tensor] = {}
    try:
        for name, place in places.items():
            _set(*place, given[name])
        yield left
    finally:
        for name, place in places.items():
            left[name] = _get(*place)
            _set(*place, before[name])


def _place(module: Any, name: str) -> tuple[Any, str]:
    """The object that holds a parameter, and its name there."""
    *path, last = name.split(".")
    owner = module
    for part in path:
        owner = owner[int(part)] if _is_position(owner, part) else getattr(owner, part)
    if not _is_position(owner, last) and not hasattr(owner, last):
        raise AttributeError(f"{type(owner).__name__} has no attribute `{last}`: no such {name}")
    return owner, last


def _is_position(owner: Any, part: str) -> bool:
    return part.isdigit() and isinstance(owner, list)


def _get(owner: Any, name: str) -> Any:
    return owner[int(name)] if _is_position(owner, name) else getattr(owner, name)


def _set(owner: Any, name: str, value: Any) -> None:
    """Set an attribute past checks of its class, which may insist on parameters."""
    if _is_position(owner, name):
        owner[int(name)] = value
        return
    for table in ("_parameters", "_buffers"):
        registered = getattr(owner, table, None)
        if isinstance(registered, dict) and name in registered:
            registered[name] = value
            return
    setattr(owner, name, value)
