"""Constructor calls of every module with every option, and the arguments they are called with.

A key is the text of a constructor call below `nn`, a value the text of the arguments. `x(*shape)`
makes a float64 leaf of normal numbers, `u(*shape)` one between 0.1 and 0.9, `i(*shape)` whole
numbers from 0 to 2, `s(*shape)` signs, `b(*shape)` truth values, `lib` is the library.
"""

import re

ONE = "x(5, 4)"
TWO = "x(5, 4), x(5, 4)"
#: One picture of three channels for each number of dimensions.
SPACE = {1: "x(2, 4, 7)", 2: "x(2, 4, 7, 6)", 3: "x(2, 4, 5, 5, 4)"}
FEW = {1: "x(2, 4, 5)", 2: "x(2, 4, 4, 3)", 3: "x(1, 4, 3, 2, 3)"}
REDUCTIONS = ("mean", "sum", "none")


def calls(arguments, *texts):
    """The same arguments for several constructors."""
    return dict.fromkeys(texts, arguments)


ACTIVATIONS = {
    **calls(
        ONE,
        "CELU()", "CELU(0.5)", "CELU(inplace=True)", "ELU()", "ELU(0.5)", "ELU(inplace=True)",
        "GELU()", "GELU('tanh')", "GLU()", "GLU(1)", "Hardshrink()", "Hardshrink(0.2)",
        "Hardsigmoid()", "Hardsigmoid(True)", "Hardswish()", "Hardswish(inplace=True)",
        "Hardtanh()", "Hardtanh(-0.3, 0.4)", "Hardtanh(max_val=0.5, inplace=True)",
        "LeakyReLU()", "LeakyReLU(0.3)", "LeakyReLU(inplace=True)", "LogSigmoid()",
        "LogSoftmax(0)", "LogSoftmax(dim=-1)", "Mish()", "Mish(inplace=True)", "PReLU()",
        "PReLU(4, init=0.1)", "ReLU()", "ReLU(inplace=True)", "ReLU6()", "ReLU6(inplace=True)",
        "RReLU()", "RReLU(0.2, 0.5)", "RReLU(inplace=True).eval()", "SELU()", "SELU(inplace=True)",
        "SiLU()", "SiLU(inplace=True)", "Sigmoid()", "Softmax(0)", "Softmax(dim=1)", "Softmin(1)",
        "Softplus()", "Softplus(2.0, 0.5)", "Softshrink()", "Softshrink(0.2)", "Softsign()",
        "Tanh()", "Tanhshrink()", "Threshold(0.1, 0.5)", "Threshold(0.1, 0.5, inplace=True)",
    ),
    **calls("x(2, 3, 4, 4)", "Softmax2d()"),
}  # fmt: skip

LINEAR = {
    **calls(
        ONE,
        "Identity()", "Identity(1, a=2)", "Linear(4, 3)", "Linear(4, 3, bias=False)",
        "LayerNorm(4)", "LayerNorm((5, 4), 1e-3)", "LayerNorm(4, elementwise_affine=False)",
        "LayerNorm(4, bias=False)", "RMSNorm(4)", "RMSNorm([5, 4], eps=1e-3)",
        "RMSNorm(4, elementwise_affine=False)", "LazyLinear(3)", "LazyLinear(3, bias=False)",
        "Unflatten(1, (2, 2))", "Unflatten(dim=0, unflattened_size=(1, -1))",
        "Dropout()", "Dropout(0.2)", "Dropout(inplace=True)", "AlphaDropout()",
        "AlphaDropout(0.2)", "AlphaDropout(inplace=True)", "FeatureAlphaDropout()",
        "FeatureAlphaDropout(0.2)", "FeatureAlphaDropout(inplace=True)",
    ),
    **calls("x(5, 4), x(5, 3)", "Bilinear(4, 3, 2)", "Bilinear(4, 3, 2, bias=False)"),
    **calls("x(2, 3, 4, 2)", "Flatten()", "Flatten(2)", "Flatten(0, 2)", "Flatten(end_dim=-2)"),
    **calls(TWO, "CosineSimilarity()", "CosineSimilarity(0, 1e-2)", "PairwiseDistance()",
            "PairwiseDistance(1.0)", "PairwiseDistance(eps=0.1)", "PairwiseDistance(keepdim=True)"),
    **calls("i(2, 5)", "Embedding(3, 4)", "Embedding(3, 4, padding_idx=1)",
            "Embedding(3, 4, max_norm=0.5)", "Embedding(3, 4, max_norm=0.5, norm_type=1.0)",
            "Embedding(3, 4, scale_grad_by_freq=True)",
            "Embedding(3, 2, _weight=lib.ones(3, 2))",
            "Embedding(3, 2, _weight=lib.ones(3, 2), _freeze=True)"),
    **calls("i(2, 5)", "EmbeddingBag(3, 4)", "EmbeddingBag(3, 4, max_norm=0.5)",
            "EmbeddingBag(3, 4, max_norm=0.5, norm_type=1.0)",
            "EmbeddingBag(3, 4, mode='sum', scale_grad_by_freq=True)",
            "EmbeddingBag(3, 4, mode='max')", "EmbeddingBag(3, 4, padding_idx=1)",
            "EmbeddingBag(3, 2, _weight=lib.ones(3, 2))"),
    **calls("i(5), lib.tensor([0, 2, 5])", "EmbeddingBag(3, 4, include_last_offset=True)"),
    **calls("i(2, 5), None, x(2, 5)", "EmbeddingBag(3, 4, mode='sum')"),
}  # fmt: skip
LINEAR |= {
    key: arguments
    for n, arguments in SPACE.items()
    for key in (f"Dropout{n}d()", f"Dropout{n}d(0.2)", f"Dropout{n}d(inplace=True)")
}

CONVOLUTIONS = {
    text: arguments
    for n, arguments in FEW.items()
    for lazy, count in (("", "4, "), ("Lazy", ""))
    for text in (
        *(
            f"{lazy}Conv{n}d({count}{rest})"
            for rest in (
                "2, 2", "2, 2, stride=2", "2, 2, padding=1", "2, 2, dilation=2, padding=1",
                "4, 1, groups=2", "2, 2, bias=False", "2, 3, padding='same'",
                "2, 2, padding='valid'", "2, 2, padding=1, padding_mode='reflect'",
                "2, 2, padding=1, padding_mode='circular'",
                "2, 2, padding=1, padding_mode='replicate'",
            )
        ),
        *(
            f"{lazy}ConvTranspose{n}d({count}{rest})"
            for rest in (
                "2, 2", "2, 2, stride=2", "2, 2, padding=1", "2, 2, 2, output_padding=1",
                "4, 1, groups=2", "2, 2, bias=False", "2, 2, dilation=2",
            )
        ),
    )
}  # fmt: skip

NORMS = {
    text: arguments
    for n, arguments in FEW.items()
    for kind, opposite in (("Batch", "False"), ("Instance", "True"))
    for lazy, count in (("", "4, "), ("Lazy", ""))
    for text in (
        f"{lazy}{kind}Norm{n}d({count[:1]})",
        f"{lazy}{kind}Norm{n}d({count}eps=0.1)",
        f"{lazy}{kind}Norm{n}d({count}momentum=0.3, track_running_stats=True)",
        f"{lazy}{kind}Norm{n}d({count}affine={opposite})",
        f"{lazy}{kind}Norm{n}d({count}affine=False)",
        f"{lazy}{kind}Norm{n}d({count}track_running_stats={opposite})",
        f"{lazy}{kind}Norm{n}d({count}track_running_stats=False)",
        f"{lazy}{kind}Norm{n}d({count}affine=True, bias=False)",
    )
} | {
    **calls("x(6, 4)", "BatchNorm1d(4)", "BatchNorm1d(4, momentum=None)"),
    **calls(FEW[1], "BatchNorm1d(4).eval()", "InstanceNorm1d(4, track_running_stats=True).eval()"),
    **calls(FEW[2], "SyncBatchNorm(4)", "SyncBatchNorm(4, 0.1, 0.3)",
            "SyncBatchNorm(4, affine=False)", "SyncBatchNorm(4, track_running_stats=False)",
            "SyncBatchNorm(4, process_group='default')", "SyncBatchNorm(4, bias=False)",
            "GroupNorm(2, 4)", "GroupNorm(2, 4, eps=0.1)", "GroupNorm(4, 4, affine=False)",
            "GroupNorm(1, 4, bias=False)", "LocalResponseNorm(2)",
            "LocalResponseNorm(3, 0.1, 0.5, 2.0)"),
}  # fmt: skip

POOLS = {
    text: arguments
    for n, arguments in SPACE.items()
    for text in (
        *(f"AvgPool{n}d({rest})" for rest in (
            "2", "3, 2", "2, padding=1", "3, 2, ceil_mode=True", "2, 1, 1, count_include_pad=False",
            *(("2, divisor_override=3",) if n > 1 else ()),
        )),
        *(f"MaxPool{n}d({rest})" for rest in (
            "2", "3, 2", "2, padding=1", "2, dilation=2", "2, return_indices=True",
            "3, 2, ceil_mode=True",
        )),
        *(f"LPPool{n}d({rest})" for rest in ("2, 2", "3, 2, stride=1", "2.5, 3, ceil_mode=True")),
        f"AdaptiveAvgPool{n}d(3)", f"AdaptiveMaxPool{n}d(3)",
        f"AdaptiveMaxPool{n}d(2, return_indices=True)",
        *((f"AdaptiveAvgPool{n}d({(2, None, 3)[:n]})",) if n > 1 else ()),
        *((
            f"FractionalMaxPool{n}d(2, output_size=2)",
            f"FractionalMaxPool{n}d(2, output_ratio=0.6, return_indices=True)",
            f"FractionalMaxPool{n}d(2, 2, _random_samples=lib.full((2, 4, {n}), 0.3).double())",
        ) if n > 1 else ()),
    )
} | {
    "MaxUnpool1d(2)": "x(1, 2, 3), lib.tensor([[[0, 2, 5], [1, 3, 4]]])",
    "MaxUnpool1d(2, stride=3)": "x(1, 2, 3), lib.tensor([[[0, 3, 6], [1, 3, 7]]])",
    "MaxUnpool1d(3, 2, padding=1)": "x(1, 1, 3), lib.tensor([[[0, 2, 4]]])",
    "MaxUnpool2d(2)": "x(1, 1, 2, 2), lib.tensor([[[[0, 3], [9, 15]]]])",
    "MaxUnpool2d(3, stride=2)": "x(1, 1, 2, 2), lib.tensor([[[[0, 3], [9, 15]]]])",
    "MaxUnpool2d(3, 2, padding=1)": "x(1, 1, 2, 2), lib.tensor([[[[0, 2], [6, 8]]]])",
    "MaxUnpool3d(2)": "x(1, 1, 1, 2, 1), lib.tensor([[[[[0], [14]]]]])",
    "MaxUnpool3d(2, stride=3)": "x(1, 1, 1, 2, 1), lib.tensor([[[[[0], [14]]]]])",
    "MaxUnpool3d(3, 2, padding=1)": "x(1, 1, 1, 2, 1), lib.tensor([[[[[0], [2]]]]])",
}  # fmt: skip

PLACES = {
    f"{kind}Pad{n}d({padding!r}{', 0.5' * (kind == 'Constant')})": FEW[n]
    for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular")
    for n in (1, 2, 3)
    for padding in (1, (1, 0) * n)
} | {
    **calls("x(2, 8, 3, 2)", "PixelShuffle(2)"),
    **calls("x(2, 4, 3, 2)", "ChannelShuffle(2)", "Unfold(2)", "Unfold(2, dilation=2, padding=1)",
            "Unfold((2, 1), padding=1, stride=2)"),
    **calls("x(2, 2, 4, 6)", "PixelUnshuffle(2)", "Upsample((3, 5))", "Upsample(scale_factor=2)",
            "Upsample(scale_factor=1.5, mode='bilinear')",
            "Upsample((3, 5), mode='bilinear', align_corners=True)",
            "Upsample(scale_factor=1.5, mode='bicubic', recompute_scale_factor=True)",
            "Upsample((3, 5), mode='nearest-exact')", "UpsamplingBilinear2d((5, 3))",
            "UpsamplingBilinear2d(scale_factor=2)", "UpsamplingNearest2d((5, 3))",
            "UpsamplingNearest2d(scale_factor=2)"),
    **calls("x(2, 8, 6)", "Fold((3, 4), 2)"),
    **calls("x(2, 8, 12)", "Fold((4, 5), 2)"),
    **calls("x(2, 8, 4)", "Fold(4, 2, dilation=2)", "Fold(4, 2, stride=2)",
            "Fold(2, 2, padding=1, stride=2)"),
}  # fmt: skip

WEIGHT = "lib.tensor([1.0, 2.0, 0.5, 1.5]).double()"
LOSSES = {
    f"{name}({rest})": arguments
    for name, arguments, *options in (
        ("L1Loss", TWO),
        ("MSELoss", TWO),
        ("SmoothL1Loss", TWO, "beta=0.2"),
        ("HuberLoss", TWO, "delta=0.2"),
        ("BCELoss", "u(5, 4), u(5, 4).detach()", f"weight={WEIGHT}"),
        ("BCEWithLogitsLoss", "x(5, 4), u(5, 4).detach()", f"weight={WEIGHT}",
         f"pos_weight={WEIGHT}"),
        ("KLDivLoss", "u(5, 4).log(), u(5, 4)", "reduction='batchmean'"),
        ("CrossEntropyLoss", "x(5, 4), i(5)", f"weight={WEIGHT}", "ignore_index=1",
         "label_smoothing=0.2"),
        ("NLLLoss", "x(5, 4), i(5)", f"weight={WEIGHT}", "ignore_index=1"),
        ("NLLLoss2d", "x(2, 4, 3, 2), i(2, 3, 2)", f"weight={WEIGHT}", "ignore_index=1"),
        ("PoissonNLLLoss", "u(5, 4), i(5, 4).double()", "log_input=False", "full=True",
         "log_input=False, eps=0.1"),
        ("GaussianNLLLoss", "x(5, 4), x(5, 4), u(5, 4)", "full=True", "eps=0.5"),
        ("MultiLabelMarginLoss", "x(5, 4), lib.tensor([[3, 0, -1, 1]] * 5)"),
        ("MultiLabelSoftMarginLoss", "x(5, 4), u(5, 4).detach()", f"weight={WEIGHT}"),
        ("MultiMarginLoss", "x(5, 4), i(5)", "p=2", "margin=0.5", f"weight={WEIGHT}"),
        ("SoftMarginLoss", "x(5, 4), s(5, 4)"),
        ("HingeEmbeddingLoss", "x(5, 4), s(5, 4)", "margin=0.3"),
        ("CosineEmbeddingLoss", "x(5, 4), x(5, 4), s(5)", "margin=0.3"),
        ("MarginRankingLoss", "x(5), x(5), s(5)", "margin=0.3"),
        ("TripletMarginLoss", "x(5, 4), x(5, 4), x(5, 4)", "margin=0.3", "p=3.0", "eps=0.1",
         "swap=True"),
        ("TripletMarginWithDistanceLoss", "x(5, 4), x(5, 4), x(5, 4)", "margin=0.3", "swap=True",
         "distance_function=lib.nn.PairwiseDistance(1.0)"),
    )
    for rest in (*(f"reduction={each!r}" for each in REDUCTIONS), *options)
} | {
    **calls("u(5, 4).log(), u(5, 4).log()", "KLDivLoss(log_target=True, reduction='sum')"),
    **calls("x(6, 2, 4).log_softmax(2), lib.tensor([[1, 2, 1], [1, 3, 3]]), "
            "lib.tensor([6, 5]), lib.tensor([2, 3])",
            *(f"CTCLoss(reduction={each!r})" for each in REDUCTIONS),
            "CTCLoss(zero_infinity=True)"),
    **calls("x(6, 2, 4).log_softmax(2), lib.tensor([[0, 2, 1], [1, 0, 2]]), "
            "lib.tensor([6, 5]), lib.tensor([2, 3])", "CTCLoss(blank=3)"),
    **calls("x(5, 4), i(5)", "LinearCrossEntropyLoss(4, 3)",
            "LinearCrossEntropyLoss(4, 3, bias=True)",
            "LinearCrossEntropyLoss(4, 3, reduction='sum')",
            "LinearCrossEntropyLoss(4, 3, weight=lib.tensor([1.0, 2.0, 3.0]).double())",
            "LinearCrossEntropyLoss(4, 3, ignore_index=1)",
            "LinearCrossEntropyLoss(4, 3, label_smoothing=0.2)",
            "LinearCrossEntropyLoss(4, 3, options=lib.nn.LinearCrossEntropyOptions())"),
    **calls("x(5, 4), i(5, 2)", "LinearCrossEntropyLoss(4, 3, out_features=(2,))"),
    **calls("x(5, 16), lib.tensor([0, 4, 7, 1, 5])",
            "AdaptiveLogSoftmaxWithLoss(16, 8, [2, 5])",
            "AdaptiveLogSoftmaxWithLoss(16, 8, [2, 5], div_value=2.0)",
            "AdaptiveLogSoftmaxWithLoss(16, 8, [4], head_bias=True)"),
}  # fmt: skip

RECURRENT = {
    **{
        f"{kind}({rest})": "x(3, 2, 4)"
        for kind in ("RNN", "LSTM", "GRU")
        for rest in ("4, 3", "4, 3, num_layers=2", "4, 3, bias=False", "4, 3, batch_first=True",
                     "4, 3, num_layers=2, dropout=0.3", "4, 3, bidirectional=True",
                     "input_size=4, hidden_size=3")
    },
    **calls("x(3, 2, 4)", "RNN(4, 3, nonlinearity='relu')", "LSTM(4, 3, proj_size=2)"),
    **calls("x(3, 2, 4), (x(1, 2, 3), x(1, 2, 3))", "LSTM(4, 3, 1)"),
    **calls("x(3, 2, 4), x(1, 2, 3)", "GRU(4, 3, 1)", "RNN(4, 3, 1)"),
    **{
        f"{kind}Cell({rest})": "x(2, 4)"
        for kind in ("RNN", "LSTM", "GRU")
        for rest in ("4, 3", "4, 3, bias=False")
    },
    **calls("x(2, 4), x(2, 3)", "RNNCell(4, 3, nonlinearity='relu')", "GRUCell(4, 3, True)"),
}  # fmt: skip

SIZES = "8, 2, 6"
LAYER = "lib.nn.Transformer{}coderLayer(8, 2, 6)"
STACK = "lib.nn.Transformer{0}coder(lib.nn.Transformer{0}coderLayer(8, 2, 6), 1)"
ATTENTION = {
    **calls("x(3, 2, 8), x(4, 2, 8), x(4, 2, 8)", "MultiheadAttention(8, 2)",
            "MultiheadAttention(8, 2, dropout=0.3)", "MultiheadAttention(8, 2, bias=False)",
            "MultiheadAttention(8, 2, add_bias_kv=True)",
            "MultiheadAttention(8, 2, add_zero_attn=True)"),
    **calls("x(2, 3, 8), x(2, 4, 5), x(2, 4, 6)",
            "MultiheadAttention(8, 4, kdim=5, vdim=6, batch_first=True)"),
    **{
        f"Transformer{kind}coderLayer({SIZES}{rest})": arguments
        for kind, arguments in (("En", "x(3, 2, 8)"), ("De", "x(3, 2, 8), x(4, 2, 8)"))
        for rest in (", dropout=0.3", ", 0.1, activation='gelu'", ", 0.1, layer_norm_eps=0.1",
                     ", 0.1, norm_first=True", ", 0.1, bias=False",
                     ", 0.1, activation=lib.nn.functional.silu")
    },
    **calls("x(2, 3, 8)", f"TransformerEncoderLayer({SIZES}, batch_first=True)"),
    **calls("x(2, 3, 8), x(2, 4, 8)", f"TransformerDecoderLayer({SIZES}, batch_first=True)"),
    **calls("x(3, 2, 8)", f"TransformerEncoder({LAYER.format('En')}, 2)",
            f"TransformerEncoder({LAYER.format('En')}, 1, norm=lib.nn.LayerNorm(8))",
            f"TransformerEncoder({LAYER.format('En')}, 1, enable_nested_tensor=False)",
            f"TransformerEncoder({LAYER.format('En')}, 1, mask_check=False)"),
    **calls("x(3, 2, 8), x(4, 2, 8)", f"TransformerDecoder({LAYER.format('De')}, 2)",
            f"TransformerDecoder({LAYER.format('De')}, 1, norm=lib.nn.LayerNorm(8))"),
    **calls("x(3, 2, 8), x(4, 2, 8)", "Transformer(8, 2, 1, 1, 6)",
            "Transformer(8, 2, 1, 1, 6, dropout=0.4)",
            "Transformer(8, 2, 1, 1, 6, activation='gelu')",
            f"Transformer(8, 2, 1, 1, 6, custom_encoder={STACK.format('En')})",
            f"Transformer(8, 2, 1, 1, 6, custom_decoder={STACK.format('De')})",
            "Transformer(8, 2, 1, 1, 6, layer_norm_eps=0.1)",
            "Transformer(8, 2, 1, 1, 6, norm_first=True)",
            "Transformer(8, 2, 1, 1, 6, bias=False)"),
    **calls("x(2, 3, 8), x(2, 4, 8)", "Transformer(8, 2, 1, 1, 6, batch_first=True)"),
}  # fmt: skip

CONTAINERS = {
    **calls(ONE, "Sequential(lib.nn.Linear(4, 3), lib.nn.Tanh())",
            "Sequential(lib.nn.Sequential(lib.nn.Linear(4, 3), lib.nn.BatchNorm1d(3)))"),
}  # fmt: skip

MODULES = {
    **ACTIVATIONS, **LINEAR, **CONVOLUTIONS, **NORMS, **POOLS, **PLACES, **LOSSES, **RECURRENT,
    **ATTENTION, **CONTAINERS,
}  # fmt: skip



def first_of_each():
    """One case for each class."""
    found = {}
    for text in MODULES:
        found.setdefault(text.partition("(")[0], text)
    return set(found.values())


#: What every run compares: of families that differ in the number of dimensions, pictures.
USUAL = first_of_each() | {
    text
    for text in MODULES
    if "Lazy" not in text and not re.match(r"\w+[13]d\(", text.partition("(lib")[0])
}

#: Classes that are compared elsewhere: without tensors, or not differentiable in PyTorch.
ELSEWHERE = {
    "Container": "tests/test_stand_ins.py",
    "CrossMapLRN2d": "tests/nn/test_spatial_layers.py",
    "Module": "tests/nn/test_modules_registration.py",
    "ModuleDict": "tests/nn/test_containers.py",
    "ModuleList": "tests/nn/test_containers.py",
    "ParameterDict": "tests/nn/test_containers.py",
    "ParameterList": "tests/nn/test_containers.py",
    "RNNBase": "tests/nn/test_recurrent.py",
    "RNNCellBase": "tests/nn/test_recurrent.py",
    "LinearCrossEntropyOptions": "tests/test_stand_ins.py",
    "Parameter": "tests/nn/test_modules_registration.py",
    "Buffer": "tests/nn/test_modules_registration.py",
    "UninitializedParameter": "tests/nn/test_lazy.py",
    "UninitializedBuffer": "tests/nn/test_lazy.py",
}
REFUSED = {"DataParallel"}
#: Options that are compared elsewhere or refused, by the reason.
OTHER_OPTIONS = {
    "of every class, in test_devices_and_types": "device dtype",
    "deprecated, in test_older_arguments": "size_average reduce min_value max_value",
    "refused, in test_sparse_gradients_are_refused": "sparse",
    "any arguments, which are not kept": "args kwargs",
}
#: Derivatives that differ on purpose, from the first order that does: docs/differences.md.
OTHER_DERIVATIVES = {
    "Embedding(3, 4, scale_grad_by_freq=True)": ("second",),
    "EmbeddingBag(3, 4, mode='sum', scale_grad_by_freq=True)": ("first", "second"),
}

#: Calls that both libraries refuse: the text, and the arguments of a call of what it makes.
WRONG = {
    "AdaptiveLogSoftmaxWithLoss(16, 8, [5, 2])": None,
    "AlphaDropout(1.5)": None,
    "Bilinear(0, 2, 3)": None,
    "Conv2d(3, 4, 3, groups=2)": None,
    "Conv2d(4, 3, 3, groups=2)": None,
    "Conv2d(4, 4, 3, groups=0)": None,
    "Conv1d(4, 4, 3, padding='some')": None,
    "Conv1d(4, 4, 3, stride=2, padding='same')": None,
    "Conv1d(4, 4, 3, padding_mode='some')": None,
    "ConvTranspose1d(4, 4, 3, padding_mode='reflect')": None,
    "Dropout(-0.1)": None,
    "Embedding(3, 4, padding_idx=5)": None,
    "Embedding(3, 4, padding_idx=-5)": None,
    "EmbeddingBag(3, 4, padding_idx=5)": None,
    "FractionalMaxPool2d(2)": None,
    "FractionalMaxPool2d(2, 2, 0.5)": None,
    "FractionalMaxPool2d(2, output_ratio=1.5)": None,
    "GRU(4, 3, dropout=2.0)": None,
    "GRU(4, 3, proj_size=2)": None,
    "GRU(4, 0)": None,
    "GRU(4, 3, 0)": None,
    "GroupNorm(3, 4)": None,
    "Hardtanh(1.0, -1.0)": None,
    "HuberLoss(delta=0.0)": "x(3), x(3)",
    "LSTM(4, 3, proj_size=3)": None,
    "LSTM(4, '3')": None,
    "MultiMarginLoss(p=3)": None,
    "MultiMarginLoss(weight=lib.ones(2, 2))": None,
    "MultiheadAttention(8, 3)": None,
    "MultiheadAttention(0, 1)": None,
    "RNN(4, 3, nonlinearity='some')": None,
    "RNNCell(4, 3, nonlinearity='some')": "x(2, 4)",
    "SmoothL1Loss(beta=-1.0)": "x(3), x(3)",
    "Threshold(1.0)": None,
    "Linear(3)": None,
    "Linear(3, 4, biased=True)": None,
    "Unflatten(1, 3)": None,
    "Unflatten(1, (1, 'a'))": None,
    "Transformer(8, 3)": None,
    "Upsample()": "x(1, 1, 4)",
    "Upsample(2, mode='some')": "x(1, 1, 4)",
    "Upsample(2, mode='bilinear')": "x(1, 1, 4)",
    "Upsample(2, 2.0)": "x(1, 1, 4)",
    "BatchNorm1d(4)": "x(2, 4, 3, 3)",
    "BatchNorm2d(4)": "x(2, 4, 3)",
    "BatchNorm1d(4).double()": "x(1, 4)",
    "BCELoss()": "u(3), u(4)",
    "BCELoss().double()": "x(3) * 100, u(3)",
    "Conv2d(4, 3, 3).double()": "x(2, 3, 5, 5)",
    "Conv2d(4, 3, 7).double()": "x(2, 4, 5, 5)",
    "Conv2d(4, 3, 3)": "x(2, 4)",
    "ConvTranspose2d(4, 3, 3, 2, output_padding=3).double()": "x(2, 4, 5, 5)",
    "CosineEmbeddingLoss()": "x(3, 2), x(3, 2), x(3, 2)",
    "CosineSimilarity()": "x(5, 4), x(5, 3)",
    "CrossEntropyLoss()": "x(5, 3), i(4)",
    "CrossEntropyLoss(label_smoothing=2.0)": "x(5, 3), i(5)",
    "CrossEntropyLoss(reduction='some')": "x(5, 3), i(5)",
    "Embedding(2, 3)": "lib.tensor([2])",
    "EmbeddingBag(3, 4)": "i(5)",
    "EmbeddingBag(3, 4, mode='max', scale_grad_by_freq=True)": "i(2, 5)",
    "Flatten(3)": "x(2, 3)",
    "Fold(3, 2)": "x(2, 8, 5)",
    "GLU()": "x(2, 3)",
    "GRU(4, 3).double()": "x(3, 2, 5)",
    "GRU(4, 3)": "x(3, 2, 4, 1)",
    "GRU(4, 3).double() ": "x(3, 2, 4), x(1, 3, 3)",
    "GRUCell(4, 3).double()": "x(2, 5)",
    "GaussianNLLLoss()": "x(3), x(3), -u(3)",
    "InstanceNorm1d(4)": "x(2, 2, 2, 2)",
    "InstanceNorm1d(4, affine=True).double()": "x(2, 3, 4)",
    "LSTM(4, 3).double()": "x(3, 2, 4), (x(1, 2, 3), x(2, 2, 3))",
    "LSTM(4, 3).double() ": "x(3, 2, 4), x(1, 2, 3)",
    "LayerNorm(3).double()": "x(5, 4)",
    "Linear(3, 4).double()": "x(5, 4)",
    "Linear(4, 4)": "x(5, 4)",
    "MarginRankingLoss()": "x(3), x(4), s(3)",
    "MaxPool2d(2, padding=2)": "x(1, 1, 4, 4)",
    "MaxPool2d(2)": "x(4)",
    "MaxPool2d(0)": "x(1, 1, 4, 4)",
    "MaxUnpool2d(2)": "x(1, 1, 2, 2), lib.tensor([[[[0, 3], [9, 99]]]])",
    "MultiLabelMarginLoss()": "x(5, 4), i(5)",
    "MultiheadAttention(8, 2).double()": "x(3, 2, 7), x(3, 2, 7), x(3, 2, 7)",
    "NLLLoss()": "x(5, 3), i(5) + 5",
    "NLLLoss() ": "x(5, 3), x(5)",
    "PReLU(3).double()": "x(2, 4)",
    "PixelShuffle(2)": "x(1, 3, 2, 2)",
    "PixelUnshuffle(2)": "x(1, 3, 3, 2)",
    "ReflectionPad1d(5)": "x(1, 1, 4)",
    "RMSNorm(3).double()": "x(5, 4)",
    "Softmax2d()": "x(2, 2)",
    "SoftMarginLoss()": "x(3), s(4)",
    "TransformerEncoderLayer(8, 2).double()": "x(3, 2, 7)",
    "TripletMarginLoss()": "x(5, 4), x(5, 4), x(5)",
    "Unfold(5)": "x(1, 1, 4, 4)",
    "AdaptiveAvgPool2d(2)": "x(4)",
    "AdaptiveAvgPool2d((-1, 2))": "x(1, 4, 4)",
    "AvgPool2d(2, divisor_override=0)": "x(1, 4, 4)",
    "ChannelShuffle(3)": "x(1, 4, 2, 2)",
    "CircularPad1d(5)": "x(1, 1, 4)",
    "LocalResponseNorm(2)": "x(3, 2)",
    "CrossMapLRN2d(2)": "x(3, 2, 2)",
    "MSELoss(reduction='some')": "x(3), x(3)",
    "PairwiseDistance()": "x(5, 4), x(5, 3)",
    "PoissonNLLLoss(reduction='some')": "x(3), x(3)",
}  # fmt: skip
