"""Sequences of different lengths: padded to one length, or packed without padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from ...core import dtypes
from ...core.tensor import Tensor
from ...creation.conversion import as_tensor, from_numpy, tensor
from ...creation.factories import empty_like, full
from ...creation.ranges import arange
from ...operators.joining import stack
from ...operators.nn import constant_pad_nd
from ...operators.sorting import sort

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
    "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def _converter(dtype: dtypes.dtype) -> Any:
    def convert(self: PackedSequence) -> PackedSequence:
        return self.to(dtype)

    convert.__doc__ = f"The sequences as {dtype}."
    return convert


class PackedSequence(_Fields):
    """Sequences, longest first, packed step by step: `batch_sizes` says how many reach each step.

    `sorted_indices` tell where each sequence was before they were sorted by length.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence and "
                "pack_padded_sequences in nn.utils.rnn."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The sequences as another type or on another device; `batch_sizes` stay as they are."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [
            None if each is None else each.to(data.device)
            for each in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """The sequences in the memory of the processor."""
        return self.to("cpu", *args, **kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """The sequences on a CUDA device."""
        return self.to("cuda", *args, **kwargs)

    def pin_memory(self) -> Self:
        """The sequences themselves: memory needs no pinning here."""
        return self

    def is_pinned(self) -> bool:
        """Whether the memory is pinned: never."""
        return False

    @property
    def is_cuda(self) -> bool:
        """Whether the sequences are on a CUDA device."""
        return self.data.device.type == "cuda"

    double = _converter(dtypes.float64)
    float = _converter(dtypes.float32)
    half = _converter(dtypes.float16)
    long = _converter(dtypes.int64)
    int = _converter(dtypes.int32)
    short = _converter(dtypes.int16)
    char = _converter(dtypes.int8)
    byte = _converter(dtypes.uint8)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another one; None for None."""
    if permutation is None:
        return None
    places = arange(permutation.numel(), device=permutation.device)
    return empty_like(permutation).scatter_(0, permutation, places)


def _places(sizes: Sequence[Any], batch: Any) -> Tensor:
    """Where packed rows are among those of `batch` padded sequences, step by step."""
    reached = np.arange(batch)[None, :] < np.asarray(sizes)[:, None]
    return from_numpy(np.flatnonzero(reached))


def _as_lengths(lengths: Any) -> Tensor:
    if isinstance(lengths, Tensor):
        return lengths.to(dtypes.int64)
    return as_tensor(lengths, dtype=dtypes.int64, device="cpu")


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack sequences that are padded to one length, (length, batch, ...) or with the batch first.

    With `enforce_sorted` they must be given longest first, else they are sorted.
    """
    lengths = _as_lengths(lengths)
    if lengths.dim() != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D "
            f"{lengths.device.type} Long tensor"
        )
    x = input.transpose(0, 1) if batch_first else input
    steps, batch = x.size(0), x.size(1)
    counts = lengths.tolist()
    if len(counts) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} "
            f"(batch_size={batch})"
        )
    if not counts:
        raise RuntimeError("Cannot pack empty tensors.")
    if min(counts) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if max(counts) > steps:
        raise RuntimeError(
            f"Expected lengths of at most {steps}, as many steps as the input has, but found "
            f"{max(counts)}"
        )
    order = None
    if not enforce_sorted:
        order = sort(lengths, descending=True)[1].to(input.device)
        x = x.index_select(1, order)
        counts.sort(reverse=True)
    elif counts != sorted(counts, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    sizes = [sum(count > step for count in counts) for step in range(counts[0])]
    rows = x.reshape(steps * batch, *x.shape[2:])
    data = rows.index_select(0, _places(sizes, batch).to(input.device))
    return PackedSequence(data, tensor(sizes), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Padded sequences in their first order, and their lengths: the inverse of packing."""
    sizes = sequence.batch_sizes.tolist()
    steps, batch = len(sizes), sizes[0]
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    data = sequence.data
    shape = (steps * batch, *data.shape[1:])
    padded = full(shape, padding_value, dtype=data.dtype, device=data.device)
    padded = padded.index_copy(0, _places(sizes, batch).to(data.device), data)
    padded = padded.reshape(steps, batch, *data.shape[1:])
    lengths = tensor([sum(size > i for size in sizes) for i in range(batch)])
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences of any lengths as one tensor, (length, batch, ...) or with the batch first."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    given = list(sequences)
    if not given:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    rest = given[0].shape[1:]
    for each in given:
        if each.dim() == 0 or each.shape[1:] != rest:
            raise RuntimeError(
                "The size of tensor a must match the size of tensor b in all dimensions but the "
                f"first: sequences have the shapes {tuple(given[0].shape)} and "
                f"{tuple(each.shape)}"
            )
    longest = max(each.size(0) for each in given)
    padded = []
    for each in given:
        width = longest - each.size(0)
        pad = (0, 0) * len(rest) + ((width, 0) if padding_side == "left" else (0, width))
        padded.append(constant_pad_nd(each.to(given[0].dtype), pad, padding_value))
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences without padding, as a list: the inverse of `pad_sequence`."""
    by_sequence = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    counts = _as_lengths(lengths).tolist()
    return [x[:count] for x, count in zip(by_sequence.unbind(0), counts, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences; see `pack_padded_sequence`."""
    lengths = [each.size(0) for each in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed one as a list, in their first order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
