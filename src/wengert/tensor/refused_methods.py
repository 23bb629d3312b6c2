"""The methods of PyTorch's Tensor that have no meaning here, and why; see `out_of_scope`."""

from __future__ import annotations

SPARSE = "tensors here are dense; sparse layouts are not stored"
QUANTIZED = "quantized tensors, with a scale and a zero point, are not stored"
STREAMS = "operators run in order, so there are no streams and events of a device"
PIECES = "it is a step of another function's computation in PyTorch, and not one here"
REMOVED = "PyTorch itself has removed it: use the function of that name, or its like, in linalg"
NUMBERS = "elements of fewer than 8 bits, 8-bit floats and 32-bit complex numbers are not stored"
NESTED = "nested tensors, of parts of different shapes, are not stored"
DEVICES = "it is for a kind of device that is not supported"
DISTRIBUTED = "a program is one process here"
OLD = "PyTorch keeps it for old programs; use resize_() or reshape()"

#: Methods and attributes of Tensor by reason.
METHODS: dict[str, str] = {
    SPARSE: """
        ccol_indices coalesce col_indices crow_indices dense_dim indices is_coalesced
        resize_as_sparse_ row_indices smm sparse_dim sparse_mask sparse_resize_
        sparse_resize_and_clear_ sspaddmm to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo
        to_sparse_csc to_sparse_csr values
    """,
    QUANTIZED: """
        dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points
        q_scale q_zero_point qscheme
    """,
    NESTED: "to_padded_tensor",
    NUMBERS: "chalf",
    REMOVED: "eig lstsq solve symeig",
    DEVICES: "ipu mtia xpu to_mkldnn",
    STREAMS: "record_stream",
    DISTRIBUTED: "is_distributed reinforce",
    OLD: "resize resize_as",
    PIECES: "hash_tensor slice_inverse",
}
