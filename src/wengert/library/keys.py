"""What a call of an operator still has to pass: PyTorch's dispatch keys, as far as they exist here.

There are two layers below the modes and classes: autograd, and the kernel of a device.
"""

from __future__ import annotations

from enum import Enum


class DispatchKey(Enum):
    """A key that kernels are registered for."""

    CPU = "CPU"
    CUDA = "CUDA"
    Meta = "Meta"
    CompositeExplicitAutograd = "CompositeExplicitAutograd"
    CompositeImplicitAutograd = "CompositeImplicitAutograd"
    Autograd = "Autograd"
    AutogradCPU = "AutogradCPU"
    AutogradCUDA = "AutogradCUDA"


#: Keys that stand for several others.
ALIAS_KEYS = ("Autograd", "CompositeExplicitAutograd", "CompositeImplicitAutograd")


class DispatchKeySet:
    """Which layers a call still has to pass: autograd and the kernel, or the kernel alone."""

    def __init__(self, *layers: str | DispatchKey) -> None:
        self.layers = frozenset([_layer(each) for each in layers])

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self.layers & other.layers))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and other.layers == self.layers

    def __hash__(self) -> int:
        return hash(self.layers)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(self.layers))})"


def _layer(key: str | DispatchKey) -> str:
    if isinstance(key, DispatchKey):
        return "Autograd" if key.value.startswith("Autograd") else "Kernel"
    return key


full_keyset = DispatchKeySet("Autograd", "Kernel")
after_autograd_keyset = DispatchKeySet("Kernel")
