"""Generators of random numbers, and the default one."""

from __future__ import annotations

import os
import struct
from _thread import allocate_lock
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..backends.backend import require_cupy
from ..core.devices import as_device, device
from ..core.registry import SCHEMA_CLASSES
from ..core.tensor import Tensor, wrap
from .mersenne import Mersenne

_DEFAULT_SEED = 67280421310721
_KEY_WORDS = 624
#: PyTorch's bytes: the seed, how many words are left, whether it is seeded, the place of the next
#: word, the words, then three numbers of which the second is a normal one that waits, whether one
#: does, and the same for float32, which nothing draws.
_STATE = struct.Struct(f"<QiiQ{8 * _KEY_WORDS}sdddi4xf?3x")
_lock = allocate_lock()


class Generator:
    """A stream of random numbers with a seed and a state of its own."""

    __module__ = "wengert"

    def __init__(self, device: Any = "cpu") -> None:
        self._device = as_device(device)
        if self._device.type == "meta":
            raise RuntimeError("a Generator draws numbers, of which the meta device has none")
        if self._device.type == "cuda":
            require_cupy()
        self._seed = _DEFAULT_SEED
        # Made on first use: seeding takes longer than a small draw.
        self._source: Mersenne | None = None

    @property
    def device(self) -> device:
        """Where the generator draws: the CPU."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Start anew from `seed`; negative seeds count back from 2**64."""
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long: seeds have 64 bits")
        self._seed = int(seed) % 2**64
        self._source = None
        return self

    def seed(self) -> int:
        """Start anew from a seed that the operating system chose, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed that was last set."""
        return self._seed

    @property
    def source(self) -> Mersenne:
        """The twister that draws the words."""
        if self._source is None:
            with _lock:
                if self._source is None:
                    self._source = Mersenne(self._seed % 2**32)
        return self._source

    def get_state(self) -> Tensor:
        """The seed and the position in its stream, in PyTorch's bytes."""
        key, following, normal = self.source.state()
        words = np.frombuffer(key, np.uint32).astype("<u8").tobytes()
        left = 1 if following == 0 else _KEY_WORDS + 1 - following
        waits = normal is not None
        packed = _STATE.pack(
            self._seed, left, 1, following, words, 0.0, normal or 0.0, 0.0, waits, 0.0, False
        )
        return wrap(np.frombuffer(packed, np.uint8).copy())

    def set_state(self, new_state: Tensor) -> Generator:
        """Return to a state that `get_state` gave, here or in PyTorch."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a wengert.ByteTensor, but got {type(new_state).__name__}")
        if new_state.array.dtype != np.uint8:
            raise TypeError("RNG state must be a wengert.ByteTensor")
        packed = new_state.array.tobytes()
        if len(packed) != _STATE.size:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.size} but found the input RNG "
                f"state size to be {len(packed)}"
            )
        seed, left, seeded, following, words, _, normal, _, waits, _, _ = _STATE.unpack(packed)
        if not (seeded and 0 < left <= _KEY_WORDS and following <= _KEY_WORDS):
            raise RuntimeError("Invalid mt19937 state: these bytes are no state of a generator")
        key = np.frombuffer(words, "<u8").astype(np.uint32).tobytes()
        self.source.restore(key, following, normal if waits else None)
        self._seed = seed
        return self

    def clone_state(self) -> Generator:
        """Another generator that will draw the same numbers."""
        return Generator(self._device).set_state(self.get_state())

    def __reduce__(self) -> tuple[Any, ...]:
        return (Generator, (self._device,), self.get_state().array.tobytes())

    def __setstate__(self, packed: bytes) -> None:
        self.set_state(wrap(np.frombuffer(packed, np.uint8)))


default_generator = Generator()
default_generator.seed()


def manual_seed(seed: int) -> Generator:
    """Start the default generator anew from `seed`, and return it."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start the default generator anew from a seed that the operating system chose."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed from which the default generator started."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """Restore the default generator at the end of the block, whatever is drawn in it."""
    if not enabled:
        yield
        return
    state = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(state)


def source_of(generator: Generator | None) -> Mersenne:
    """The twister behind a generator, or behind the default one."""
    if generator is None:
        return default_generator.source
    if not isinstance(generator, Generator):
        raise TypeError(
            f"argument 'generator' must be wengert.Generator, not {type(generator).__name__}"
        )
    return generator.source


SCHEMA_CLASSES["Generator"] = Generator
