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


def _settings_of_attention(kind: str) -> tuple:
    """Functions that set and tell whether attention may be computed in one of PyTorch's ways."""
    allowed = [True]

    def enable(enabled: bool) -> None:
        allowed[0] = enabled

    def is_enabled() -> bool:
        return allowed[0]

    enable.__doc__ = f"Note whether {kind} attention is wanted: there are no CUDA devices."
    is_enabled.__doc__ = f"Whether {kind} attention is wanted on CUDA devices."
    return enable, is_enabled


enable_flash_sdp, flash_sdp_enabled = _settings_of_attention("flash")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _settings_of_attention("memory-efficient")
enable_math_sdp, math_sdp_enabled = _settings_of_attention("plain")
enable_cudnn_sdp, cudnn_sdp_enabled = _settings_of_attention("cuDNN")
