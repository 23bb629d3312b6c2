"""The differences that are meant, each with its reason; docs/differences.md explains them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fuzz.comparison import COARSEST, GRAPHS, Difference
from operators.declared import EXPRESSIONS, NODES, VIEWS


@dataclass
class Declared:
    """A difference that is meant: its reason and what it looks like."""

    reason: str
    matches: Callable[[Difference], bool]
    #: Whether what comes after it can still be compared.
    harmless: bool = False
    #: Whether the memory, views and nodes of what is made of such a tensor differ too.
    spreads: bool = False


def _strip(name: object) -> object:
    return re.sub(r"^torch::autograd::", "", name) if isinstance(name, str) else name


def _is_gradient(d: Difference) -> bool:
    """Programs give such names to what backward has made."""
    return d.name[:1] in ("d", "g", "r")


def _names_gradient(d: Difference) -> bool:
    """Whether a name is that of a gradient, or of a tensor that is made of one."""
    text, met = _naming(d, d.name), {d.name}
    while (made_of := re.search(r"= (t\d+)\b", text)) and made_of[1] not in met:
        met.add(made_of[1])
        text = _naming(d, made_of[1])
    return _is_gradient(d) or bool(re.search(r"= [dgr]\d", text))


def _raises(d: Difference, *phrases: str) -> bool:
    """Whether PyTorch raises with one of these phrases, and we do not or otherwise."""
    return (
        d.field in ("error", "message")
        and d.theirs is not None
        and any(re.search(phrase, d.theirs.message) for phrase in phrases)
    )


def _refused(d: Difference, *phrases: str) -> bool:
    """Whether PyTorch alone raises, with one of these phrases."""
    return d.field == "error" and d.ours is None and _raises(d, *phrases)


def is_refused_change(d: Difference) -> bool:
    """Whether PyTorch alone finds that what it has saved was changed, or has found it earlier."""
    changed = "modified by an inplace operation"
    goes_on = d.ours is None or d.field == "error" and d.ours.message == "first call"  # of a hook
    return (
        d.field == "error" and goes_on and _raises(d, changed)
        or d.field in ("log", "grad") and _after(d, changed)
    )


def _refused_by_us(d: Difference, *phrases: str) -> bool:
    """Whether we alone raise, with one of these phrases."""
    return (
        d.field == "error"
        and d.theirs is None
        and any(re.search(phrase, d.ours.message) for phrase in phrases)
    )


def _after(d: Difference, phrase: str) -> bool:
    """Whether PyTorch has raised with this phrase so far."""
    return any(re.search(phrase, message) for message in d.before)


#: Derivatives that transforms take, and their orders.
ORDERS = {
    "grad": 1, "grad_and_value": 1, "vjp": 1, "jvp": 1, "jacrev": 1, "jacfwd": 1, "hessian": 2,
    "jacobian": 1, "linearized": 1,
}  # fmt: skip


def _order(d: Difference) -> int:
    """The order of the derivatives that the nested transforms of a program take."""
    return sum(
        order * len(re.findall(rf"\b{name}\(", d.program.text)) for name, order in ORDERS.items()
    )


def _differ_by_nan(ours: object, theirs: object) -> bool:
    """Whether numbers differ only where one of them is not a number."""
    if isinstance(ours, (list, tuple)):
        return (
            isinstance(theirs, (list, tuple))
            and len(ours) == len(theirs)
            and all(map(_differ_by_nan, ours, theirs))
        )
    if ours == theirs or ours != ours or theirs != theirs:
        return True
    numbers = isinstance(ours, (float, complex)) and isinstance(theirs, (float, complex))
    return numbers and abs(ours - theirs) <= 1e-3 * abs(theirs)


def _nearly(ours: object, theirs: object) -> bool:
    """Whether numbers agree to four digits of the largest among them."""
    mine, other = _numbers_in(ours), _numbers_in(theirs)
    largest = max([1.0, *(abs(number) for number in other)])
    return len(mine) == len(other) and all(
        abs(a - b) <= 1e-4 * largest for a, b in zip(mine, other)
    )


def _numbers_in(value: object) -> list[complex]:
    """All numbers among nested lists, in their order."""
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in _numbers_in(item)]
    return [value] if isinstance(value, (int, float, complex)) else []


def _kinds(d: Difference) -> tuple:
    return tuple(error and error.kind for error in (d.ours, d.theirs))


def _not_floating(d: Difference) -> bool:
    return not d.dtype.startswith(("float", "bfloat", "complex"))


VIEW_METHODS = (
    "as_strided|view|expand|select|narrow|diagonal|unsqueeze|squeeze|transpose|swapaxes|swapdims|"
    "movedim|permute|reshape|flatten|unfold|t"
)
#: A change of a shape in place.
RESHAPED = re.compile(r"\.(t|transpose|swapaxes|swapdims|squeeze|unsqueeze|resize|as_strided)_\(")
#: An assignment to a part of a tensor.
ASSIGNED = re.compile(r"^\s*\w+\[.*\] = ", re.MULTILINE)


def _changes(d: Difference) -> bool:
    """Whether the program changes a tensor in place."""
    return bool(re.search(r"\.\w+_\(|\] = | [-+*/%]{1,2}= |out=", d.program.text))


def _changes_view(d: Difference) -> bool:
    """Whether the program changes a view in place."""
    views = re.findall(rf"(\w+) = \w+(?:\[|\.(?:{VIEW_METHODS})\()", d.program.text)
    return any(
        re.search(rf"\b{name}(?:\.\w+_\(| [-+*/%]{{1,2}}= )", d.program.text) for name in views
    )


def _has_empty(d: Difference) -> bool:
    """Whether the program makes a tensor without elements."""
    return bool(re.search(r"tensor\(\[+\]|\(0,|, 0[,)]", d.program.text))


def _only_theirs_nan(ours: object, theirs: object) -> bool:
    """Whether numbers differ only where theirs is not a number and ours is."""
    if isinstance(ours, (list, tuple)):
        return (
            isinstance(theirs, (list, tuple))
            and len(ours) == len(theirs)
            and all(map(_only_theirs_nan, ours, theirs))
        )
    if ours == theirs or theirs != theirs:
        return True
    numbers = isinstance(ours, (float, complex)) and isinstance(theirs, (float, complex))
    return numbers and abs(ours - theirs) <= 1e-3 * abs(theirs)


def _agree_but_for_nan(ours: object, theirs: object) -> bool:
    """Whether numbers differ only where ours is not a number."""
    return _only_theirs_nan(theirs, ours)


def _numbers(value: object) -> list[str]:
    """All numbers among nested lists, whatever their places."""
    if isinstance(value, (list, tuple)):
        return sorted(number for item in value for number in _numbers(item))
    return [f"{value:.4g}" if isinstance(value, (float, complex)) else repr(value)]


def _flat(value: object) -> list[float]:
    """All real numbers among nested lists."""
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in _flat(item)]
    return [value] if isinstance(value, float) else []


#: Another name for a tensor, or what may return it as it is.
SAME = re.compile(
    r"^\s*\w+ = (?:torch\.(?:[\w.]*dropout\w*|real)\()?(\w+)(?:, .*\)|\)|"
    r"\.(?:to|type|type_as|contiguous|"
    r"double|float|half|bfloat16|cpu|detach_|requires_grad_|resolve_conj|resolve_neg)\(.*\)|"
    r"\.real)?$",
    re.MULTILINE,
)


def _made_by(d: Difference) -> str:
    """The source of what differs: its step or the one that named it, and functions called there."""
    text = _naming(d, d.name) + _changing(d, d.name) if d.source == "end" else d.source
    met: set[str] = set()
    while (other := SAME.search(text)) and other[1] not in met:
        met.add(other[1])
        text = f"{_naming(d, other[1])}\n{_changing(d, other[1])}\n{text}"
    for step in reversed(d.program.steps):
        definition = re.match(r"(?:def|class) (\w+)", step.source)
        if definition and re.search(rf"\b{definition[1]}\b", text):
            text += "\n" + step.source
    return text


def _first_word(source: str) -> str:
    """The name that a step begins with."""
    word = re.match(r"\s*(\w+)", source)
    return word[1] if word else ""


def _naming(d: Difference, name: str) -> str:
    """The source of the steps that give a name to something."""
    return "\n".join(step.source for step in d.program.steps if name in step.targets)


def _origin(d: Difference, name: str) -> str:
    """The source that gives a name to something, or to the several results that it is one of."""
    text = _naming(d, name)
    return "\n".join([text, *(_naming(d, whole) for whole in re.findall(r"= (t\d+)\[", text))])


def _changing(d: Difference, name: str) -> str:
    """The source of the steps that call an in-place form on what has a name."""
    called = re.compile(rf"\b{name.partition('[')[0]}\.\w+_\(")
    return "\n".join(step.source for step in d.program.steps if called.search(step.source))


def _hears_other_nodes(d: Difference) -> bool:
    """Whether a program has a hook on a node that is declared to be another."""
    heard = re.findall(r"(\w+)\.grad_fn\.register_", d.program.text)
    heard += re.findall(r"get_gradient_edge\((\w+)\)\.node", d.program.text)
    return any(OTHER_NODES.search(_origin(d, name) + _changing(d, name)) for name in heard)


def _without_aliases(text: str) -> str:
    """The source with one name for dual tensors, primals and views that share their memory."""
    part = rf"\n|\[|\.data\b|\.(?:{VIEW_METHODS}|detach)\("
    shared = rf"(\w+) = (?:forward_ad\.make_dual\((\w+),|(\w+)(?:{part}))"
    roots: dict[str, str] = {}
    for alias, primal, base in re.findall(shared, text):
        roots[alias] = roots.get(primal or base, primal or base)
    return re.sub(r"\w+", lambda word: roots.get(word[0], word[0]), text)


def _calls(names: Iterable[str]) -> re.Pattern:
    """Finds uses of operators in source."""
    words = "|".join(sorted({name.rpartition(".")[2] for name in names}))
    return re.compile(rf"(?:\.|sampled\('(?:linalg\.)?)(?:{words})_?\b")


def _writes(expressions: Iterable[str]) -> re.Pattern:
    """Finds expressions with any number for 2 and any operand for x."""
    patterns = [
        re.escape(text).replace("2", r"(?<![\w.\])])[\d.]+j?").replace("x", r"[a-z(]")
        for text in expressions
    ]
    return re.compile("|".join(patterns))


#: What uses an operator or an expression whose graph is declared to be another.
OTHER_NODES = re.compile(f"{_calls(NODES).pattern}|{_writes(EXPRESSIONS).pattern}")
OTHER_VIEWS = _calls(VIEWS)
CHANGED_BY_ITSELF = re.compile(r"(\w+)(?:\.\w+_\(| [-+*/%]{1,2}= ).*\b\1\b")
#: Functions with a place where a factor of their derivative is infinite or not a number.
HAS_EDGES = re.compile(
    r"\.(abs|sgn|l1_loss|log\w*|rsqrt|sqrt|r?pow|float_power|norm|\w*_norm|normalize|\w*distance|cdist|dist|std|var|"
    r"std_mean|var_mean|atan2|asin|acos|acosh|atanh|arc\w+|erfinv|xlogy|polar|angle|hypot|prod|"
    r"cumprod|reciprocal|div|\w*eigh?|\w*svd|linalg\.\w+|\w*softmax|\w*entropy\w*|kl_div|\w*nll_loss|logit|cosine_similarity)_?"
    r"\(|\*\*|/|sampled\("
)
#: Operators that save an operand in PyTorch, for its shape alone, or a result that no rule reads.
SAVES_MORE = re.compile(
    r"\.(gather|take|take_along_dim|put|complex|pad|median|nanmedian|masked_select|cummax|cummin|"
    r"logcumsumexp|index_add|index_copy|combinations|cross|cdist|pdist|dist|grid_sample|"
    r"log_ndtr|ldexp|pow|float_power|\w+_norm|solve_triangular|triangular_solve|jvp|jacfwd|hessian|linearize|"
    r"i?r?h?fft\w?)_?\(|linearized\(|\*\*|\bconv\w*\(|\w*pool\dd\(|\bdet\(|cholesky_inverse|"
    r"rounding_mode|cholesky_solve|linalg\.(lstsq|cond)|lu_solve|linalg\.lu'|orgqr|ormqr|householder_product"
)


#: What makes a transform, in which tensors are not saved by hooks.
TRANSFORMS = re.compile(r"\b(torch\.func|functional\.|vmap|jacobian|linearized|is_grads_batched)\b")
#: Operators that read an operand where PyTorch reads a result, or the other way.
READS_OTHERS = re.compile(
    r"(\.|sampled\('(\w+\.)*)(prod|cumprod|logcumsumexp|polar|linear|einsum|scatter_reduce|"
    r"logsigmoid|cosine_similarity|solve|solve_ex|det|slogdet|logdet|lstsq|cond|cross|vander|ndtr|"
    r"log_ndtr|cdist|pdist|dist|renorm|index_reduce|lu_solve|householder_product|orgqr|ormqr|"
    r"norm_except_dim|native_\w+_norm|batch_norm|group_norm|grid_sample|bilinear)_?\b"
)
#: Functions of matrices and transforms, whose results LAPACK or a plan lays out in PyTorch.
MATRICES = re.compile(
    r"linalg\.|fft\.|sampled\(|\.(fill|cholesky\w*|triangular_solve|orgqr|ormqr|geqrf|lu_\w+|inverse|"
    r"matrix_exp|matrix_power|pinverse|svd|qr|slogdet|logdet|det|stft|istft|nuclear_norm)\("
)
#: What copies the memory of an operand as it is, gaps included, or hands out parts of it.
COPIES = re.compile(r"\.(\w+_scatter|unsafe_\w+|\w+_copy)\(")


TABLE: list[Declared] = [
    Declared(
        "Factors, solutions and transforms may lie in memory in another order.",
        lambda d: d.field in ("stride", "offset") and bool(MATRICES.search(_made_by(d))),
        harmless=True,
    ),
    Declared(
        "Factors, solutions and transforms may lie in memory in another order.",
        lambda d: bool(MATRICES.search(d.program.text))
        and (_refused(d, "view size is not compatible", "setStorage")
             or _refused_by_us(d, "view size is not compatible", "setStorage")
             or d.program.uses("reshape", "flatten", "contiguous")
             and (_refused(d, "modified by an inplace operation")
                  or _refused_by_us(d, "modified by an inplace operation"))
             or d.field in ("requires_grad", "leaf", "retains_grad", "inference")
             and d.program.uses("reshape", "flatten", "contiguous")
             or d.field in ("values", "grad")
             and (d.program.uses("as_strided")
                  # A view here may be a copy there, which a change tells apart.
                  or d.program.uses("reshape", "flatten", "contiguous") and _changes(d))),
    ),
    Declared(
        "Copies with a part replaced, and parts from unsafe_split, have memory of their own.",
        lambda d: d.field in ("stride", "offset", "version") and bool(COPIES.search(_made_by(d)))
        or d.field == "values" and d.program.uses("as_strided", "expand", "unfold")
        and bool(re.search(r"_scatter\(", d.program.text))
        or d.field in ("values", "grad", "log") and "unsafe_" in d.program.text and _changes(d)
        or _refused_by_us(d, "setStorage") and "unsafe_" in d.program.text
        or d.field == "values" and bool(re.search(r"narrow_copy\(.*out=", d.program.text)),
    ),
    Declared(
        "vander and as_strided_scatter have derivatives.",
        lambda d: d.program.uses("vander") and _refused(d, "modified by an inplace operation")
        or d.program.uses("as_strided_scatter") and d.field in ("values", "grad"),
    ),
    Declared(
        "A derivative that is missing is noticed when its node is reached.",
        lambda d: d.field in ("grad", "log") and _after(d, "derivative for .* is not implemented"),
    ),
    Declared(
        "What a node has saved of its own results is what it computed, whatever .data is set to.",
        lambda d: bool(re.search(r"\.data = ", d.program.text))
        and (_refused(d, "is out of bounds for dimension")
             or bool(READS_OTHERS.search(d.program.text))
             and (_refused(d, "input matrix is singular")
                  or d.field in ("values", "grad") and (_is_gradient(d) or d.field == "grad"))),
    ),
    Declared(
        "A retained gradient of a result counts what second derivatives send through it",
        lambda d: d.field in ("grad", "log")
        and bool(re.search(r"derivatives\(.*, [23]\)|create_graph=True", d.program.text))
        and any(
            re.search(f"{READS_OTHERS.pattern}|{OTHER_NODES.pattern}", _origin(d, name))
            for name in ([d.name] if d.field == "grad" else
                         re.findall(r"(\w+)(?:\.grad_fn)?\.register_", d.program.text))
        ),
    ),
    Declared(
        "A Function can read a view that it has saved, though its base has changed.",
        lambda d: d.program.uses("saved_tensors")
        and _refused(d, "This view was created inside a custom Function",
                     "This view is the output of a function that returns multiple views"),
    ),
    Declared(
        "diff of nothing is nothing, with out= too.",
        lambda d: d.program.uses("diff") and "out=" in d.source
        and _refused(d, "start out of range"),
    ),
    Declared(
        "Derivatives of determinants, solutions, eigenvectors and reflections are right in "
        "forward mode too.",
        lambda d: d.field == "values" and _is_gradient(d)
        and (_order(d) >= 2 and d.program.uses("logdet", "slogdet", "det", "householder_product",
                                               "orgqr", "ormqr")
             # In place of what det has saved, PyTorch reads what the operand is later.
             or (d.program.uses("cholesky_inverse") or d.program.uses("det") and _changes(d))
             and d.program.uses("jvp", "jacfwd", "hessian", "make_dual")),
    ),
    Declared(
        "What is not a number spreads through a solution as its rows are combined.",
        lambda d: d.field in ("values", "grad", "log") and bool(MATRICES.search(d.program.text))
        and "nan" in repr(d.theirs) and _differ_by_nan(d.ours, d.theirs),
    ),
    Declared(
        "The logarithm of the determinant of a singular matrix has no derivative.",
        lambda d: d.field in ("values", "grad") and d.program.uses("slogdet")
        and "nan" in repr(d.ours) and _differ_by_nan(d.ours, d.theirs),
    ),
    Declared(
        "Which phase or sign eigenvectors and singular vectors have is not determined",
        lambda d: d.field == "log" and "register_" in d.program.text
        and bool(re.search(r"sampled\('[\w.]*(svd|eig\w*|qr)'", d.program.text))
        and _nearly([abs(n) for n in _numbers_in(d.ours)], [abs(n) for n in _numbers_in(d.theirs)]),
    ),
    Declared(
        "matrix_exp of 16-bit floats is a number.",
        lambda d: d.field in ("values", "grad") and d.program.uses("matrix_exp")
        and bool(COARSEST.search(d.program.text))
        and any(not math.isfinite(number) for number in _flat(d.theirs)),
    ),
    Declared(
        "A Function refuses what it has saved and what was detached in place.",
        lambda d: d.field == "error" and d.theirs is None
        and "has been detached in-place" in d.ours.message,
    ),
    Declared(
        "Node names carry no C++ namespace.",
        lambda d: d.field == "node" and d.ours == _strip(d.theirs),
        harmless=True,
    ),
    Declared(
        "The graph and the memory of a gradient are those of our rules.",
        lambda d: _names_gradient(d)
        and d.field in ("node", "view", "base", "stride", "offset", "version", "grad")
        or d.field == "base" and str(d.ours)[:1] in ("d", "g", "r"),
        harmless=True,
    ),
    Declared(
        "The graph and the memory of a gradient are those of our rules.",
        lambda d: d.field == "base" and str(d.ours)[:1] in ("d", "g", "r")
        or d.field in ("stride", "offset") and bool(re.search(r"\bg\d", _naming(d, d.name))),
        harmless=True,
    ),
    Declared(
        "The graph and the memory of a gradient are those of our rules.",
        lambda d: _refused_by_us(d, "does not require grad and does not have a grad_fn")
        and bool(re.search(r"grad\(g\d|g\d+\.backward|backward\(\[g\d", d.source))
        or (_raises(d, "A view was created in no_grad mode")
            or _refused_by_us(d, "A view was created in no_grad mode"))
        and bool(re.match(r"\s*[dgr]\d+[.\[ ]|.*\.apply\([dgr]\d", d.source)
                 or re.search(r"= [dgr]\d", _naming(d, _first_word(d.source)))),
    ),
    Declared(
        "The graph and the memory of a gradient are those of our rules.",
        lambda d: d.field in ("requires_grad", "leaf") and _names_gradient(d),
    ),
    Declared(
        "Which of equal elements kthvalue and topk name is not determined.",
        lambda d: d.field == "values" and _not_floating(d)
        and bool(re.search(r"\.(kthvalue|topk)\(", _made_by(d))),
    ),
    Declared(
        "Some functions are made of other operators, and their graphs show it.",
        lambda d: d.field == "node" and bool(OTHER_NODES.search(_made_by(d))),
        harmless=True,
    ),
    Declared(
        "Some functions are made of other operators, and their graphs show it.",
        lambda d: d.field == "log" and _hears_other_nodes(d)
        # A node that saves nothing, such as a view on top of what was computed, frees nothing.
        or _refused_by_us(d, "through the graph a second time")
        and bool(OTHER_NODES.search(d.program.text))
        or bool(re.search(r"(split|split_with_sizes|unbind)_copy\(", d.program.text))
        and (d.field == "log" or d.field == "error" and d.ours is None)
        and "register_" in d.program.text,
    ),
    Declared(
        "Some functions are made of other operators, and their graphs show it.",
        lambda d: d.field in ("view", "base") and bool(OTHER_VIEWS.search(_made_by(d))),
        harmless=True,
        spreads=True,
    ),
    Declared(
        "Some functions are made of other operators, and their graphs show it.",
        lambda d: (_refused_by_us(d, "A view was created in no_grad mode")
            or _refused(d, "A view was created in no_grad mode")
            or d.field == "value" and "allow_unused" in d.source and _changes(d))
        and bool(OTHER_VIEWS.search(d.program.text)),
    ),
    Declared(
        "Some functions are made of other operators, and their graphs show it.",
        lambda d: d.field in ("requires_grad", "leaf") and "triangular_solve(" in _made_by(d)
        # Without reflections it is the identity, whatever is given.
        or d.field in ("requires_grad", "leaf") and _has_empty(d)
        and bool(re.search(r"householder_product|orgqr", _made_by(d)))
        or d.field in ("grad", "log") and d.program.uses("triangular_solve")
        or d.program.uses("triangular_solve") and _refused(d, "'NoneType' object has no attribute")
        or d.program.uses("triangular_solve")
        and _refused_by_us(d, "appears to not have been used in the graph"),
    ),
    Declared(
        "A complex zero to the power of zero is one.",
        lambda d: d.field == "values" and d.dtype.startswith("complex")
        and bool(re.search(r"\*\*|pow", d.program.text)) and _only_theirs_nan(d.ours, d.theirs),
    ),
    Declared(
        "polar keeps its angle.",
        lambda d: (_is_gradient(d) and d.field == "values" or d.field == "grad")
        and ".polar(" in d.program.text,
    ),
    Declared(
        "No complex32.",
        lambda d: d.field == "dtype" and d.theirs == "complex32",
    ),
    Declared(
        "Versions tell that a tensor has changed, not how often its memory was written.",
        lambda d: d.field == "version" and d.ours > 0
        and (d.theirs > 0 or bool(re.search(r"\bkron\(.*out=", d.program.text))),
        harmless=True,
    ),
    Declared(
        "Results of operands with gaps or overlaps in memory may be laid out in another order.",
        lambda d: d.field == "stride" and d.program.uses("as_strided", "unfold", "expand"),
    ),
    Declared(
        "Strides that nothing depends on may differ",
        lambda d: d.field == "stride" and None in d.ours and None in d.theirs
        and bool(re.search(r"\.(t|transpose|swap\w+|movedim|moveaxis|permute|unsqueeze|m?T)\b",
                           d.program.text)),
        harmless=True,
    ),
    Declared(
        "Parts of complex numbers are found again when their tensor is reshaped in place",
        lambda d: d.field == "node" and d.ours == "AsStridedBackward0"
        and d.theirs == "ViewAsRealBackward0" and bool(RESHAPED.search(d.program.text)),
        harmless=True,
    ),
    Declared(
        "A view keeps its own kind of node when its base changes in place.",
        lambda d: d.field == "node" and d.theirs == "AsStridedBackward0",
        harmless=True,
    ),
    Declared(
        "A rounded quotient has the derivative zero.",
        lambda d: d.field == "node" and _strip(d.theirs) == "NotImplemented",
        harmless=True,
    ),
    Declared(
        "A rounded quotient has the derivative zero.",
        lambda d: d.field in ("error", "message") and d.theirs is not None
        and "derivative for aten::floor_divide" in d.theirs.message,
    ),
    Declared(
        "Operators compute dtypes and derivatives that PyTorch has not implemented.",
        lambda d: _refused(d, "not implemented", "does not support automatic differentiation",
                           "not supported", "does not support it",
                           "does not yet have a batching rule", "isn't supported yet",
                           r"calling .item\(\) on a Tensor",
                           "Expected a proper Tensor but got None", "but got .*Half")
        or _raises(d, "derivative for .* is not implemented", "AD with .* does not support it",
                   "does not support automatic differentiation for outputs",
                   "Batching rule not implemented"),
    ),
    Declared(
        "What PyTorch refuses as not implemented is refused as a RuntimeError, or the other way.",
        lambda d: d.field == "message"
        and bool(re.search("not supported|not implemented for", d.ours.message))
        or d.field == "error" and set(_kinds(d)) == {"RuntimeError", "NotImplementedError"},
        harmless=True,
    ),
    Declared(
        "A gradient has the shape of its value: PyTorch loses track where src exceeds index.",
        lambda d: _refused(d, "returned an invalid gradient at index"),
    ),
    Declared(
        "A graph keeps what its gradient needs, whatever is changed later.",
        lambda d: d.program.uses(*GRAPHS)
        and (_refused(d, "modified by an inplace operation", "modified inplace", "a second time")
             or _is_gradient(d) and d.field == "values" and ".data" in d.program.text),
    ),
    Declared(
        "A graph cannot be traced where values decide what comes next.",
        lambda d: d.field == "error" and d.ours is not None and d.ours.kind == "TraceError"
        and bool(re.search("values decide|needs the value", d.ours.message)),
    ),
    Declared(
        "Inference mode may stand inside a transform.",
        lambda d: _refused(d, "Cannot set version_counter for inference tensor")
        or d.field in ("values", "version") and _after(d, "Cannot set version_counter for infer"),
    ),
    Declared(
        "Reverse mode gives gradients of the dtype of their arguments, forward mode tangents of "
        "the dtype of results.",
        lambda d: d.program.ours and d.field == "dtype" and d.program.uses("jacobian"),
    ),
    Declared(
        "Without grad mode nothing is recorded for reverse mode, and forward mode goes on.",
        lambda d: d.program.ours and d.program.uses("jacobian")
        and (d.field == "values" and _is_gradient(d)
             or _refused_by_us(d, "does not require grad and does not have a grad_fn"))
        and d.program.uses("no_grad", "set_grad_enabled", "inference_mode"),
    ),
    Declared(
        "Forward mode may change an argument in place, reverse mode may not.",
        lambda d: d.program.uses("jacobian", "linearized") and d.field == "error"
        and any(e and re.search("leaf Variable that requires|modified by an inplace", e.message)
                for e in (d.ours, d.theirs))
        and None in (d.ours, d.theirs)
        or d.program.ours and d.program.uses("jacobian", "linearized") and bool(d.before)
        and d.field in ("values", "version") and not _is_gradient(d) and _changes(d),
    ),
    Declared(
        "Functions that are no views take tensors of every layout.",
        lambda d: ".view(" not in d.source and _refused(d, "view size is not compatible")
        or d.field == "values" and "median" in d.source and d.program.uses("expand", "as_strided"),
    ),
    Declared(
        "A vectorized jacobian may have no elements.",
        lambda d: d.program.uses("jacobian", "jacfwd", "hessian", "jacrev")
        and d.field == "error" and d.theirs is not None
        and bool(re.search(r"index 0 (is )?out of|stack expects a non-empty", d.theirs.message)),
    ),
    Declared(
        "Rules leave what they have saved alone: PyTorch's rule of norm changes its mask.",
        lambda d: _refused(d, "output 0 of MaskedFill"),
    ),
    Declared(
        "Gradients that are batched do not escape into .grad.",
        lambda d: d.field == "grad" and "unreadable" in repr(d.theirs),
    ),
    Declared(
        "A number is saved as the number, and backward does not free it.",
        lambda d: d.field in ("error", "message") and d.theirs is not None
        and "backward through the graph a second time" in d.theirs.message
        or d.field in ("log", "grad") and _after(d, "graph a second time"),
    ),
    Declared(
        "The third derivative of layer_norm is that of its second.",
        lambda d: d.field == "values" and _is_gradient(d)
        and bool(re.search(r"\.\w*(layer|batch|instance|group)_norm\(", d.program.text))
        and (bool(re.search(r"derivatives\(.*, 3\)", d.program.text)) or _order(d) >= 3
             or _order(d) == 2 and d.program.uses("jvp", "jacfwd", "hessian")),
    ),
    Declared(
        "polygamma(1, x) is exact to rounding",
        lambda d: d.field in ("values", "grad")
        and bool(re.search(r"polygamma|digamma|lgamma|psi\b|gammaln", d.program.text))
        and _nearly(d.ours, d.theirs),
    ),
    Declared(
        "The derivatives of logcumsumexp are exact",
        lambda d: d.field == "values" and _is_gradient(d) and d.program.uses("logcumsumexp")
        and (bool(re.search(r"derivatives\(.*, 3\)", d.program.text)) or _order(d) >= 3
             or _agree_but_for_nan(d.ours, d.theirs)),
    ),
    Declared(
        "Forward mode knows inference tensors: PyTorch's vectorized jacobian of one is zero.",
        lambda d: d.field in ("values", "value", "dtype") and _is_gradient(d)
        and "strategy='forward-mode'" in d.source and d.program.uses("inference_mode")
        and (d.field == "dtype" or not re.search("[1-9]", repr(d.theirs))),
    ),
    Declared(
        "Where a derivative is not a number, forward and reverse mode pass it on differently.",
        lambda d: d.program.ours and d.field == "values" and _is_gradient(d)
        and _differ_by_nan(d.ours, d.theirs),
    ),
    Declared(
        "Whether an operand or a copy of it is saved can differ in functions made of others.",
        lambda d: (_raises(d, "modified by an inplace operation")
                   or _refused_by_us(d, "modified by an inplace operation"))
        and (d.program.uses("tensordot", "kron", "einsum", "chain_matmul",
                            "scaled_dot_product_attention", "binary_cross_entropy_with_logits",
                            "ndtr")
             or bool(OTHER_NODES.search(d.program.text))
             or d.program.uses("vmap") and d.program.uses("index_select")),
    ),
    Declared(
        "Integers beside floating point numbers do not overflow in rules",
        lambda d: (d.field == "values" and _is_gradient(d) or d.field == "grad")
        and d.program.uses("atan2", "atan2_", "arctan2")
        and bool(re.search(r"torch\.(u?int\d|bool)", d.program.text)),
    ),
    Declared(
        "polar keeps its angle",
        lambda d: d.program.uses("polar")
        and (d.field == "values" and _is_gradient(d) or d.field == "grad"
             or _refused_by_us(d, "modified by an inplace operation")),
    ),
    Declared(
        "An operand keeps its shape when it is changed in place",
        lambda d: "addbmm_" in d.program.text
        and (_refused_by_us(d, "doesn't match the broadcast shape") or d.field == "shape"
             or d.field == "message" and "doesn't match the broadcast shape" in d.ours.message),
    ),
    Declared(
        "Writing to out= counts as a change",
        lambda d: d.field == "version" and d.ours > d.theirs
        and bool(re.search("kron.*out=", d.program.text)),
        harmless=True,
    ),
    Declared(
        "A view made in inference mode has its base's gradient, so inference tensors beside it "
        "are refused.",
        lambda d: d.field == "error" and d.theirs is None and d.program.uses("inference_mode")
        and "Inference tensors cannot be saved" in d.ours.message,
    ),
    Declared(
        "A tangent of nothing is zeros, or not a number where its value is not",
        lambda d: d.field == "error" and d.theirs is None
        and "already has a forward gradient" in d.ours.message and _has_empty(d)
        or d.field == "values" and _is_gradient(d) and "nan" in repr(d.ours)
        and d.program.uses("var", "var_mean") and _has_empty(d),
    ),
    Declared(
        "Strides that nothing depends on are not looked at",
        lambda d: (_has_empty(d) or "_copy(" in d.source)
        and _raises(d, "must have a stride divisible", "must have a last dimension with stride 1"),
    ),
    Declared(
        "Rules work on tensors without elements.",
        lambda d: _has_empty(d) and _refused_by_us(d, r"calling .tolist\(\) on a Tensor")
        or _has_empty(d)
        and _raises(d, "cannot reshape tensor of 0 elements", r"max\(\): Expected reduction dim",
                    "FFT error"),
    ),
    Declared(
        "Batch rules know numbers: PyTorch's of flip and of losses take each example for more.",
        lambda d: d.program.uses("flip", "flipud", "fliplr", "rot90")
        and _raises(d, "Dimension out of range")
        or "_scatter(" in d.program.text and _raises(d, "Expected index")
        or d.program.uses("vmap", "jacfwd", "hessian", "jacobian")
        and bool(re.search(r"_loss|convolution|linalg\.solve", d.program.text))
        and _raises(d, "size of tensor a .* must match the size of tensor b",
                    "Attempting to broadcast a dimension"),
    ),
    Declared(
        "Inside vmap, and of results, as_strided sees other places in memory.",
        lambda d: d.program.uses("as_strided")
        and (d.program.uses("vmap") and (d.field == "values" and _is_gradient(d)
                                         or _refused(d, "setStorage"))
             or _refused_by_us(d, "in forward mode inside vmap, a view made by as_strided")
             or _refused_by_us(d, "setStorage")
             and bool(re.search("_loss|_entropy|unique", d.program.text))),
    ),
    Declared(
        "Inside vmap, a product may lie in memory otherwise, so that view() does not fit.",
        lambda d: d.program.uses("vmap") and _refused_by_us(d, "view size is not compatible"),
    ),
    Declared(
        "A view that may not be used can leave a transform: using it raises.",
        lambda d: d.program.uses("func", "vmap", "jacobian")
        and _refused(d, "its base or another view of its base has been modified inplace"),
    ),
    Declared(
        "A view of a dual tensor that was changed can be changed itself.",
        lambda d: d.program.uses("enter_dual_level")
        and _refused(d, "leaf Variable that requires grad"),
    ),
    Declared(
        "A power of complex numbers has a complex tangent, whatever its exponent.",
        lambda d: d.field == "values" and _is_gradient(d) and d.dtype.startswith("complex")
        and bool(re.search(r"\*\*|pow", d.program.text))
        and d.program.uses("jvp", "jacfwd", "hessian", "make_dual", "forward-mode"),
    ),
    Declared(
        "Equal numbers have no variance",
        lambda d: d.field in ("values", "grad") and d.program.uses("expand", "as_strided")
        and bool(re.search(r"\.(var|std)(_mean)?\(", d.program.text)),
    ),
    Declared(
        "What PyTorch refuses may go on here to another error.",
        lambda d: d.field == "error" and None not in (d.ours, d.theirs)
        and d.program.uses("out_dims") and "Dimension out of range" in d.ours.message
        or d.field == "message" and "Inference tensors cannot be" in d.theirs.message
        and bool(re.search("should be between 0 and 1|shapes cannot be mult", d.ours.message)),
    ),
    Declared(
        "A call with out= that is refused writes nothing.",
        lambda d: d.field in ("values", "version", "shape")
        and _after(d, "_out that does not support it because it is an out= function"),
    ),
    Declared(
        "A compiled function is one node, which refuses changes of all that it has saved.",
        lambda d: d.program.uses("compiled")
        and (_refused_by_us(d, "modified by an inplace operation")
             or d.field == "message" and "modified by an inplace operation" in d.ours.message),
    ),
    Declared(
        "vmap computes all examples at once, and raises what the first of them does not.",
        lambda d: d.program.ours and d.program.uses("vmap")
        and (d.field in ("error", "message") and None not in (d.ours, d.theirs)
             or d.program.uses("no_grad", "set_grad_enabled")
             and _refused_by_us(d, "does not require grad and does not have a grad_fn")
             or _refused(d, "modified by an inplace operation")),
    ),
    Declared(
        "A number as a tensor to the power of a tensor lies in memory as a number to that power.",
        lambda d: d.field in ("stride", "offset") and bool(re.search(r"\*\*|pow", d.program.text)),
    ),
    Declared(
        "A view of a tensor without elements can be changed where others can, and a view that "
        "was assigned to.",
        lambda d: _refused(d, "leaf Variable that requires grad")
        and (_has_empty(d) or bool(ASSIGNED.search(d.program.text)) or _changes_view(d)),
    ),
    Declared(
        "The dtypes are fifteen.",
        lambda d: "complex32" in (d.ours, d.theirs),
    ),
    Declared(
        "A tangent has the dtype of its primal.",
        lambda d: d.field == "dtype" and _is_gradient(d) and "tangent" in d.source
        or d.program.uses("enter_dual_level") and _refused(d, "expected dtype .* but got dtype"),
    ),
    Declared(
        "A tangent that was unpacked stays when its tensor is changed in place.",
        lambda d: d.field in ("values", "version", "shape", "stride", "node")
        and _is_gradient(d) and d.source == "end" and d.program.uses("enter_dual_level"),
    ),
    Declared(
        "A result without a batch dimension can go to any of out_dims.",
        lambda d: d.program.uses("out_dims") and _refused(d, "expanded size of the tensor")
        or d.program.uses("out_dims") and d.field == "error" and d.theirs is None
        and "Dimension out of range" in d.ours.message  # PyTorch makes sizes up
        or d.program.uses("out_dims") and d.field == "values" and _is_gradient(d)
        and _numbers(d.ours) == _numbers(d.theirs),  # in other places
    ),
    Declared(
        "A derivative at the edge of a domain is a number where PyTorch multiplies 0 by infinity.",
        lambda d: (_is_gradient(d) and d.field == "values" or d.field == "grad")
        and _only_theirs_nan(d.ours, d.theirs) and bool(HAS_EDGES.search(d.program.text)),
    ),
    Declared(
        "A dtype that an operator has no kernel for is refused, also where there is nothing to do.",
        lambda d: _refused_by_us(d, "not implemented for")
        and (_has_empty(d) or bool(re.search(r"kthvalue\(|argwhere|nonzero", d.program.text)))
        or d.field in ("error", "message") and d.ours is not None
        and "can't be cast to the desired output type Bool" in d.ours.message
        and bool(re.search(r"\.cum(sum|prod)_\(", d.source)),
    ),
    Declared(
        "out= is accepted in every form of a call.",
        lambda d: "out=" in d.source and d.field == "error" and d.theirs is not None
        and bool(re.search("invalid combination of|must be Tensor, not", d.theirs.message)),
    ),
    Declared(
        "A gradient too many is an error.",
        lambda d: d.field == "error" and d.theirs is None
        and bool(re.search(r"got \d+ tensors and \d+ gradients", d.ours.message)),
    ),
    Declared(
        "A change that is refused outside inference mode does not happen.",
        lambda d: d.field in ("values", "shape", "stride", "log")
        and _after(d, "Inplace update to inference tensor")
        or d.field == "error" and _after(d, "Inplace update to inference tensor")
        and bool(RESHAPED.search(d.program.text))
        or d.field == "message" and "Inplace update to inference tensor" in d.ours.message,
    ),
    Declared(
        "A division of integers by zero, which raises, has changed nothing.",
        lambda d: d.field == "values" and _after(d, "ZeroDivisionError|division by zero")
        and _not_floating(d),
    ),
    Declared(
        "A compiled function that raises has changed nothing.",
        lambda d: d.field in ("values", "grad", "log") and bool(d.before)
        and d.program.uses("compiled"),
    ),
    Declared(
        "conj() computes, it is not a lazy view.",
        lambda d: _refused(d, "unresolved conjugated tensors")
        or d.field in ("log", "grad") and _after(d, "unresolved conjugated tensors"),
    ),
    Declared(
        "Batched gradients are not written into shared ones, nor into zeros without memory.",
        lambda d: _raises(d, "is not possible because there exists a Tensor",
                          "ZeroTensors are immutable", "with unallocated storage"),
    ),
    Declared(
        "A batched value is not written into a tensor that the examples share.",
        lambda d: d.field in ("error", "message") and d.ours is not None
        and "vmap: inplace arithmetic" in d.ours.message,
    ),
    Declared(
        "A tensor that has a value for each example has no .data inside vmap.",
        lambda d: d.field == "error" and d.ours is not None
        and "accessing `data` under vmap" in d.ours.message,
    ),
    Declared(
        "The result of cond requires grad if that of either branch does.",
        lambda d: d.program.uses("cond")
        and (_refused_by_us(d, "view was created in no_grad mode")
             or d.field in ("values", "grad") and "nan" in repr(d.ours)
             and _differ_by_nan(d.ours, d.theirs)),
    ),
    Declared(
        "Operators save no more than their rules read: gather and take no operand, powers no "
        "result.",
        lambda d: (is_refused_change(d) and bool(TRANSFORMS.search(d.program.text))
                   or _refused(d, "Inference tensors cannot be")
                   or d.field == "message"
                   and "modified by an inplace operation" in d.theirs.message)
        and bool(SAVES_MORE.search(d.program.text)),
    ),
    Declared(
        "A limit of clamp that is reached has no tangent, as it has no gradient.",
        lambda d: d.field == "values" and _is_gradient(d)
        and bool(re.search(r"torch\.(clamp|clip)\([tx]\d+, .*[tx]\d|"
                           r"[tx]\d+\.(clamp|clip)_?\([^)]*[tx]\d", d.program.text))
        and d.program.uses("jvp", "jacfwd", "hessian", "make_dual", "linearized", "forward-mode"),
    ),
    Declared(
        "Where acosh is not a number its derivative is none.",
        lambda d: (d.field == "values" and _is_gradient(d) or d.field == "grad")
        and bool(re.search(r"acosh|arccosh", d.program.text)) and "nan" in repr(d.ours)
        and _agree_but_for_nan(d.ours, d.theirs),
    ),
    Declared(
        "Convolutions and norms of 16-bit floats are rounded once",
        lambda d: d.field == "values" and bool(COARSEST.search(d.program.text))
        and bool(re.search(r"pool|conv|norm|linear|interpolate|mean", d.program.text))
        and bool(re.search(r"\.(round|floor|ceil|trunc|frac|sgn|sign|fmod|remainder)_?\(|//|%",
                           d.program.text)),
    ),
    Declared(
        "scale_grad_by_freq scales the derivative of the gradient as well.",
        lambda d: d.field == "values" and "scale_grad_by_freq=True" in d.program.text,
    ),
    Declared(
        "Real gradients of complex results are taken.",
        lambda d: _raises(d, r"isFloatingType\(grad")
        or d.field in ("log", "grad") and _after(d, r"isFloatingType\(grad"),
    ),
    Declared(
        "A tensor that is changed by itself has the tangent of that.",
        lambda d: d.field == "values" and _is_gradient(d)
        and bool(CHANGED_BY_ITSELF.search(_without_aliases(d.program.text)))
        and d.program.uses("make_dual", "jvp", "jacfwd", "hessian", "linearized"),
    ),
    Declared(
        "scatter_reduce by products has a forward rule that knows include_self.",
        lambda d: d.field == "values" and _is_gradient(d)
        and bool(re.search(r"scatter_reduce.*'prod'", d.program.text))
        and d.program.uses("jvp", "jacfwd", "hessian", "make_dual", "linearized", "forward-mode"),
    ),
    Declared(
        "Equal largest differences share the gradient of cdist and pdist",
        lambda d: (d.field == "values" and _is_gradient(d) or d.field == "grad")
        and bool(re.search(r"[cp]dist\(.*inf", d.program.text)),
    ),
    Declared(
        "Equal largest elements share the gradient of scatter_reduce and index_reduce.",
        lambda d: (d.field == "values" and _is_gradient(d) or d.field == "grad")
        and bool(re.search(r"(scatter|index)_reduce.*'am(ax|in)', include_self=False",
                           d.program.text)),
    ),
    Declared(
        "A dual tensor is no view, and a copy of an inference tensor is none.",
        lambda d: d.field in ("view", "base", "leaf")
        and d.program.uses("make_dual", "inference_mode"),
        harmless=True,
    ),
    Declared(
        "conj() computes, it is not a lazy view.",
        lambda d: d.field in ("view", "base", "node", "offset", "stride", "requires_grad", "leaf")
        and d.dtype.startswith("complex"),
        harmless=True,
        spreads=True,
    ),
    Declared(
        "Integer tensors never require grad.",
        lambda d: d.field in ("requires_grad", "leaf", "node", "retains_grad")
        and (_not_floating(d) or d.integers)
        or d.field == "log" and d.integers
        or d.field in ("error", "message") and d.integers and d.ours is not None
        or _refused(d, "Autograd not support dtype", "INTERNAL ASSERT FAILED")
        or d.field == "error" and d.theirs is None and bool(ASSIGNED.search(d.program.text))
        and bool(re.search("does not require grad|doesn't require grad", d.ours.message)),
    ),
    Declared(
        "Every function with out= refuses arguments that require grad.",
        lambda d: d.field == "error" and d.ours is not None
        and "arguments don't support automatic differentiation" in d.ours.message,
    ),
]  # fmt: skip


def declared(difference: Difference) -> Declared | None:
    """The entry that explains a difference, if there is one."""
    return next((entry for entry in TABLE if entry.matches(difference)), None)
