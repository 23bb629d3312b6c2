"""Settings of computations on CUDA devices, of which there are none."""

from __future__ import annotations


class _Matmul:
    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False


matmul = _Matmul()


def is_built() -> bool:
    """Whether there is code for CUDA devices."""
    return False
