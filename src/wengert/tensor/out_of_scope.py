"""The names of PyTorch's package and of its Tensor that have no meaning here, and why.

Functions, methods and classes exist under their names and raise NotImplementedError with the reason
when they are called, so that a program that only mentions them runs. Values, such as types of
elements, are missing, since programs ask whether they exist: looking for one raises an
AttributeError that has the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..core.missing import missing
from .refused_methods import (
    DISTRIBUTED,
    METHODS,
    NESTED,
    NUMBERS,
    PIECES,
    QUANTIZED,
    REMOVED,
    SPARSE,
    STREAMS,
)

VENDOR = "it calls one vendor's library; the function without the vendor's name serves all devices"
FBGEMM = "it prepares weights for a library for low-precision products on x86"
SCRIPT = "it belongs to TorchScript, PyTorch's language for programs; wengert.compile needs none"
SYMBOLIC = "sizes are plain numbers in all programs, also in those that are compiled"
DISPATCHER = "it steers PyTorch's C++ dispatcher; wengert.library registers operators"
MASKED = "no tensor carries a mask; the functions of wengert.masked take masks as arguments"
RUNTIME = "it is about the build or the runtime of PyTorch"

#: Functions and classes, the latter with a capital first letter, by reason.
_CALLED: dict[str, str] = {
    SPARSE: """
        ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy
        resize_as_sparse_ row_indices_copy saddmm smm sparse_bsc_tensor sparse_bsr_tensor
        sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor spmm sspaddmm
        values_copy
    """,
    QUANTIZED: """
        choose_qparams_optimized dequantize empty_quantized fake_quantize_per_channel_affine
        fake_quantize_per_tensor_affine fused_moving_avg_obs_fake_quant int_repr q_per_channel_axis
        q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point quantize_per_channel
        quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm quantized_gru
        quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_max_pool1d
        quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell
        QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage
    """,
    VENDOR: """
        cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu
        cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable
        miopen_batch_norm miopen_convolution miopen_convolution_add_relu miopen_convolution_relu
        miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn
        mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights
        mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer is_vulkan_available
    """,
    FBGEMM: """
        fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
        fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation
        fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix
    """,
    SCRIPT: """
        AliasDb AnyType Argument ArgumentSpec AwaitType Block BoolType BufferDict CallStack Capsule
        ClassType Code CompilationUnit CompleteArgumentSpec ComplexType ConcreteModuleType
        ConcreteModuleTypeBuilder DeviceObjType DictType EnumType ErrorReport ExecutionPlan
        FileCheck FloatType FunctionSchema Future FutureType Gradient Graph GraphExecutorState
        IODescriptor InferredType IntType InterfaceType JITException ListType LiteScriptModule
        LockingLogger
        LoggerBase ModuleDict Node NoneType NoopLogger NumberType OperatorInfo OptionalType
        ParameterDict PyObjectType RRefType ScriptClass ScriptClassFunction ScriptDict
        ScriptDictIterator ScriptDictKeyIterator ScriptFunction ScriptList ScriptListIterator
        ScriptMethod ScriptModule ScriptModuleSerializer ScriptObject ScriptObjectProperty
        StaticModule StringType StreamObjType TensorType TracingState TupleType Type UnionType Use
        Value fork import_ir_module import_ir_module_from_buffer merge_type_from_type_comment
        parse_ir parse_schema parse_type_comment unify_type_list wait AggregationType
        SymBoolType SymIntType DeepCopyMemoTable DeserializationStorageContext
        SerializationStorageContext PyTorchFileReader PyTorchFileWriter
    """,
    SYMBOLIC: """
        SymBool SymFloat SymInt sym_constrain_range sym_constrain_range_for_size sym_fresh_size
    """,
    STREAMS: "Event Stream",
    DISPATCHER: "DispatchKey DispatchKeySet ExcludeDispatchKeyGuard",
    PIECES: """
        batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt
        batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats
        batch_norm_update_stats grid_sampler_2d grid_sampler_3d
        native_batch_norm native_channel_shuffle native_dropout native_group_norm native_norm
        affine_grid_generator grid_sampler embedding_renorm_ segment_reduce
        slice_inverse hash_tensor
    """,
    REMOVED: "eig lstsq matrix_rank solve symeig",
    NESTED: "nested_tensor",
    DISTRIBUTED: "is_distributed prepare_multiprocessing_environment thread_safe_generator",
    RUNTIME: """
        BenchmarkConfig BenchmarkExecutionStats ThroughputBenchmark compiled_with_cxx11_abi
        get_file_path init_num_threads profiler_allow_cudagraph_cupti_lazy_reinit_cuda12
        classproperty get_device_module AcceleratorError FatalError OutOfMemoryError
    """,
}
#: Values by reason.
_VALUES: dict[str, str] = {
    NUMBERS: """
        bit bits16 bits1x8 bits2x4 bits4x2 bits8 chalf complex32 float4_e2m1fn_x2 float8_e4m3fn
        float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int2 int3 int4 int5 int6
        int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7
    """,
    QUANTIZED: """
        per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine
        per_tensor_symmetric qint32 qint8 qscheme quint2x4 quint4x2 quint8
    """,
    SPARSE: "sparse_bsc sparse_bsr sparse_coo sparse_csc sparse_csr",
    NESTED: "jagged",
    SCRIPT: "AVG SUM PRIVATE_OPS",
    RUNTIME: "USE_GLOBAL_DEPS USE_RTLD_GLOBAL_WITH_LIBTORCH",
}
_MASKED = {MASKED: "MaskedTensor as_masked_tensor is_masked_tensor masked_tensor"}


def reasons(table: dict[str, str]) -> dict[str, str]:
    return {name: reason for reason, names in table.items() for name in names.split()}


#: Reasons by module below the package, where "" is the package itself, and name.
OUT_OF_SCOPE: dict[tuple[str, str], str] = {
    (module, name): reason
    for module, table in (
        ("", _CALLED), ("Tensor", METHODS), ("masked", _MASKED),
    )
    for name, reason in reasons(table).items()
}  # fmt: skip
ABSENT_VALUES = reasons(_VALUES)

_made: dict[tuple[str, str], Any] = {}


def refusal(full: str, reason: str) -> Callable[..., NoReturn]:
    """A function that says why it cannot be called."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{full} is out of scope: {reason}")

    refuse.__name__ = full.rpartition(".")[2]
    refuse.__qualname__, refuse.__module__ = refuse.__name__, full.rpartition(".")[0]
    refuse.__doc__ = f"Out of scope: {reason}."
    return refuse


def look_up(module: str, name: str) -> Any:
    """The stand-in for a name of `module`; AttributeError, with a reason if there is one."""
    below = module.partition(".")[2]
    key = (below, name)
    reason = OUT_OF_SCOPE.get(key)
    if reason is None:
        why = ABSENT_VALUES.get(name) if not below else None
        if why is not None:
            raise AttributeError(f"{module} has no attribute {name!r}: {why}", name=name)
        raise missing(module, name)
    if key not in _made:
        refuse = refusal(f"{module}.{name}", reason)
        if name[0].isupper():
            body = {"__init__": refuse, "__doc__": refuse.__doc__, "__module__": module}
            _made[key] = type(name, (), body)
        else:
            _made[key] = refuse
    return _made[key]
