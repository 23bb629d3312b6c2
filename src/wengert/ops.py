"""Look-up of operators, ``wengert.ops.<namespace>.<name>.<overload>``, built in and custom.

>>> import wengert
>>> wengert.ops.aten.mul.Tensor(wengert.ones(2), 3)
tensor([3., 3.])
>>> print(wengert.ops.aten.relu.default._schema)
aten::relu(Tensor self) -> Tensor
"""

from __future__ import annotations

from .library.overloads import OpNamespace

_namespaces: dict[str, OpNamespace] = {}


def __getattr__(name: str) -> OpNamespace:
    if name.startswith("__"):
        raise AttributeError(f"module 'wengert.ops' has no attribute {name!r}")
    return _namespaces.setdefault(name, OpNamespace(name))
