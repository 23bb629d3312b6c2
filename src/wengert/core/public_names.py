"""Names of the package that are imported when they are first asked for, by module."""

from __future__ import annotations

#: Modules of the package that are names of it.
MODULES = (
    "_C", "__future__", "_library", "accelerator", "amp", "as_torch", "backends", "compiler",
    "cuda", "demo", "distributed", "distributions", "fft", "func", "jit", "library", "linalg",
    "masked", "nn", "ops", "optim", "overrides", "random", "serialization", "signal", "special",
    "storage", "testing", "types", "utils", "version", "viz",
)  # fmt: skip
#: Names by the module that has them.
_BY_MODULE = {
    "_C": "DisableTorchFunction DisableTorchFunctionSubclass",
    "amp": "GradScaler autocast get_autocast_dtype is_autocast_available is_autocast_enabled",
    "autograd.anomaly_mode": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
    "compiler": "compile cond while_loop",
    "core.settings": """
        are_deterministic_algorithms_enabled get_deterministic_debug_mode
        get_float32_matmul_precision get_num_interop_threads get_num_threads has_lapack has_mkl
        has_openmp has_spectral is_deterministic_algorithms_warn_only_enabled
        is_warn_always_enabled set_deterministic_debug_mode set_float32_matmul_precision
        set_flush_denormal set_num_interop_threads set_num_threads set_warn_always
        use_deterministic_algorithms
    """,
    "core.symbols": "sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum typename",
    "creation.more": "empty_permuted from_file frombuffer range",
    "creation.windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    "func": "vmap",
    "library": "Tag",
    "nn.functional": """
        adaptive_avg_pool1d avg_pool1d bilinear celu celu_ channel_shuffle conv1d conv2d conv3d
        conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity max_pool1d
        max_pool2d max_pool3d pairwise_distance pixel_shuffle pixel_unshuffle prelu rms_norm rrelu
        rrelu_ selu selu_ threshold threshold_
    """,
    "nn.functional.package_forms": """
        adaptive_max_pool1d alpha_dropout alpha_dropout_ batch_norm
        binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss dropout dropout_
        embedding_bag feature_alpha_dropout feature_alpha_dropout_ feature_dropout
        feature_dropout_ group_norm hinge_embedding_loss instance_norm kl_div layer_norm
        margin_ranking_loss max_pool1d_with_indices poisson_nll_loss triplet_margin_loss
    """,
    "nn.functional.recurrent": """
        gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
    """,
    "serialization": "load save",
    "tensor.printing": "set_printoptions",
    "tensor.storages": """
        BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage
        ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage LongStorage
        ShortStorage Storage TypedStorage UntypedStorage is_storage
    """,
    "tensor.tensor_types": """
        BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor
        IntTensor LongTensor ShortTensor set_default_tensor_type
    """,
    "version": "__version__",
}
NAMES = {name: module for module, names in _BY_MODULE.items() for name in names.split()}
