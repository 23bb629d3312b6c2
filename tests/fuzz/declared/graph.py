"""Differences of the graph: its nodes, what they save and free, and what requires grad."""

from __future__ import annotations

import re

from fuzz.comparison import GRAPHS
from fuzz.declared.entry import Declared
from fuzz.declared.looking import (
    ASSIGNED,
    RESHAPED,
    after,
    changes,
    finds_change,
    goes_on,
    is_gradient,
    not_floating,
    raises,
    records_inference,
    refused,
    refused_by_us,
    strip,
)
from fuzz.declared.numbers import differ_by_nan, nearly, numbers, numbers_in
from fuzz.declared.origins import (
    OTHER_NODES,
    OTHER_VIEWS,
    asks_beside_compiled,
    changes_memory_of_gradient,
    changing,
    fails_plainly,
    first_word,
    frees_a_graph,
    goes_on_plainly,
    goes_without_integers,
    hears_nodes_of_gradients,
    hears_other_nodes,
    history,
    leading_to,
    made_by,
    names_gradient,
    naming,
    origin,
)
from fuzz.declared.patterns import READS_OTHERS, SAVES_MORE

TABLE: list[Declared] = [
    Declared(
        "What a node has saved of its own results is what it computed, whatever .data is set to.",
        lambda d: bool(re.search(r"\.data\b", d.program.text))
        and (refused(d, "is out of bounds for dimension")
             or bool(READS_OTHERS.search(d.program.text))
             and refused(d, "input matrix is singular")),
    ),
    Declared(
        "A retained gradient of a result counts what second derivatives send through it",
        lambda d: d.field in ("grad", "log")
        and bool(re.search(r"derivatives\(.*, [23]\)|create_graph=True", d.program.text))
        and any(
            re.search(f"{READS_OTHERS.pattern}|{OTHER_NODES.pattern}",
                      origin(d, name) + changing(d, name))
            for name in ([d.name] if d.field == "grad" else
                         re.findall(r"(\w+)(?:\.grad_fn)?\.register_", d.program.text))
        )
        # The same with respect to a result that is asked for.
        or d.field in ("value", "values")
        and any(
            READS_OTHERS.search(origin(d, name))
            for asked in re.findall(r"grad\(g\d+, \[([^\]]*)\]", d.source)
            for name in asked.split(", ")
        ),
    ),
    Declared(
        "Where a gradient does not depend on a leaf, there is none rather than zeros",
        lambda d: d.field == "grad" and d.ours is None and not any(numbers_in(d.theirs[1]))
        and bool(re.search(r"\bg\d+\.backward\(|backward\(\[[^\]]*\bg\d", d.program.text)),
        harmless=True,
    ),
    Declared(
        "A Function can read a view that it has saved, though its base has changed.",
        lambda d: d.program.uses("saved_tensors")
        and (d.field == "error" and goes_on(d)
             and raises(d, "This view was created inside a custom Function",
                        "This view is the output of a function that returns multiple views")
             # Its backward has run here, and the hooks after it.
             or d.field in ("log", "grad")
             and after(d, "This view was created inside a custom Function")
             # It has let go of what it read before another node raised; in PyTorch it raises again.
             or d.field == "message" and "through the graph a second time" in d.ours.message
             and frees_a_graph(d)
             and (d.before[:-1].count(d.theirs.message) > 0
                  and raises(d, "This view was created inside a custom Function")
                  or raises(d, "output of a function that returns multiple views"))),
    ),
    Declared(
        "A Function refuses what it has saved and what was detached in place.",
        lambda d: d.field == "error" and d.theirs is None
        and "has been detached in-place" in d.ours.message,
    ),
    Declared(
        "Node names carry no C++ namespace.",
        lambda d: d.field == "node" and d.ours == strip(d.theirs),
        harmless=True,
    ),
    Declared(
        "The graph and the memory of a gradient are those of our rules.",
        lambda d: names_gradient(d)
        and d.field in ("node", "view", "base", "stride", "offset", "version", "grad")
        or d.field == "base" and str(d.ours)[:1] in ("d", "g", "r"),
        harmless=True,
    ),
    Declared(
        "The graph and the memory of a gradient are those of our rules.",
        lambda d: d.field == "base" and str(d.ours)[:1] in ("d", "g", "r")
        or d.field in ("stride", "offset") and bool(re.search(r"\bg\d", naming(d, d.name))),
        harmless=True,
    ),
    Declared(
        "The graph and the memory of a gradient are those of our rules.",
        lambda d: refused_by_us(d, "does not require grad and does not have a grad_fn")
        and bool(re.search(r"grad\(g\d|g\d+\.backward|backward\(\[g\d", d.source))
        # The gradient of a mean is one number in memory, as that of a sum is.
        or refused_by_us(d, "more than one element of the written-to tensor")
        and bool(re.search(r"\.mean\(\)|mean\(t\d+\)", d.program.text))
        and bool(re.search(r"\bg\d", history(d)))
        or (refused(d, "setStorage") or refused_by_us(d, "setStorage"))
        and bool(re.search(r"\bg\d", history(d)))
        or (raises(d, "A view was created in no_grad mode")
            or refused_by_us(d, "A view was created in no_grad mode"))
        and bool(re.match(r"\s*[dgr]\d+[.\[ ]|.*\.apply\([dgr]\d", d.source)
                 or re.search(r"= (forward_ad\.unpack_dual\()?[dgr]\d",
                              naming(d, first_word(d.source)))
                 or changes_memory_of_gradient(d)),
    ),
    Declared(
        "The graph and the memory of a gradient are those of our rules.",
        lambda d: d.field in ("requires_grad", "leaf") and names_gradient(d)
        or d.field == "log" and hears_nodes_of_gradients(d)
        or d.field in ("values", "grad") and d.laid_out and "as_strided" in history(d)
        and bool(re.search(r"\bg\d", history(d))),
    ),
    Declared(
        # Which of two reasons to refuse a second derivative is met first depends on its nodes.
        "The graph and the memory of a gradient are those of our rules.",
        lambda d: d.field == "message" and "through the graph a second time" in d.ours.message
        and "modified by an inplace operation" in d.theirs.message and frees_a_graph(d)
        and bool(re.search(r"\bg\d", history(d))),
    ),
    Declared(
        "Some functions are made of other operators, and their graphs show it.",
        lambda d: d.field == "node" and bool(OTHER_NODES.search(made_by(d))),
        harmless=True,
    ),
    Declared(
        "Some functions are made of other operators, and their graphs show it.",
        # The second result is a copy of the coefficients, and depends on nothing else.
        lambda d: "triangular_solve" in history(d)
        and (d.field in ("requires_grad", "leaf") or d.field == "node" and d.ours is None
             or refused_by_us(d, "'NoneType' object has no attribute 'register",
                              "a hook on a tensor that doesn't require grad")),
        harmless=True,
    ),
    Declared(
        "Some functions are made of other operators, and their graphs show it.",
        lambda d: d.field == "log" and hears_other_nodes(d)
        # So does the order of hooks, and what has been done by the time one of them raises.
        or d.field == "log" and bool(OTHER_NODES.search(d.program.text))
        and numbers(d.ours) == numbers(d.theirs)
        or (d.field in ("grad", "log") and after(d, "first call") or refused(d, "first call")
            or refused_by_us(d, "first call"))
        and bool(OTHER_NODES.search(d.program.text))
        # A node that saves nothing, such as a view on top of what was computed, frees nothing.
        or refused_by_us(d, "through the graph a second time")
        and frees_a_graph(d) and bool(OTHER_NODES.search(history(d))),
    ),
    Declared(
        "Some functions are made of other operators, and their graphs show it.",
        lambda d: d.field in ("view", "base") and bool(OTHER_VIEWS.search(made_by(d))),
        harmless=True,
        spreads=True,
    ),
    Declared(
        "Some functions are made of other operators, and their graphs show it.",
        lambda d: (refused_by_us(d, "A view was created in no_grad mode")
            or raises(d, "A view was created in no_grad mode")
            or d.field == "value" and "allow_unused" in d.source and changes(d)
            or bool(RESHAPED.search(d.program.text)) and refused(d, "Mismatch in shape")
            or refused_by_us(d, "Can't detach views in-place")
            or refused(d, "Can't detach views in-place"))
        and bool(OTHER_VIEWS.search(d.program.text))
        # A view of a view is recorded under no_grad too, where its base has come to require grad.
        or d.field in ("requires_grad", "leaf") and "requires_grad_()" in d.program.text
        and bool(re.search(r"no_grad|set_grad_enabled", made_by(d)))
        and bool(OTHER_VIEWS.search(history(d))),
    ),
    Declared(
        "A hook on the node of block_diag sees gradients of the shapes of the operands",
        lambda d: d.field == "log" and "block_diag(" in d.program.text
        and bool(re.search(r"\.register_hook|\.node\b", d.program.text))
        and nearly(d.ours, d.theirs),
    ),
    Declared(
        "Parts of complex numbers are found again when their tensor is reshaped in place",
        lambda d: d.field == "node" and d.theirs == "ViewAsRealBackward0"
        and bool(RESHAPED.search(d.program.text)),
        harmless=True,
    ),
    Declared(
        "Parts of complex numbers are found again when their tensor is reshaped in place",
        lambda d: bool(re.search(r"view_as_real|\.(real|imag)\b", d.program.text))
        and bool(RESHAPED.search(d.program.text))
        # Where both shapes are the same, PyTorch's gradient belongs to other elements.
        and (refused(d, "invalid gradient at index 0 - got")
             or d.field == "values" and is_gradient(d) or d.field in ("grad", "log")),
    ),
    Declared(
        "A view keeps its own kind of node when its base changes in place.",
        lambda d: d.field == "node" and d.theirs == "AsStridedBackward0",
        harmless=True,
    ),
    Declared(
        "A rounded quotient has the derivative zero.",
        lambda d: d.field == "node" and strip(d.theirs) == "NotImplemented",
        harmless=True,
    ),
    Declared(
        "A number is saved as the number, and backward does not free it.",
        lambda d: d.field in ("error", "message") and d.theirs is not None
        and "backward through the graph a second time" in d.theirs.message
        or d.field in ("log", "grad") and after(d, "graph a second time"),
    ),
    Declared(
        "Whether an operand or a copy of it is saved can differ in functions made of others.",
        lambda d: (raises(d, "modified by an inplace operation") or finds_change(d))
        and (d.program.uses("tensordot", "kron", "einsum", "chain_matmul",
                            "scaled_dot_product_attention", "binary_cross_entropy_with_logits",
                            "ndtr")
             or bool(OTHER_NODES.search(history(d)))
             or d.program.uses("vmap") and d.program.uses("index_select")),
    ),
    Declared(
        "Operators save no more than their rules read: gather and take no operand, powers no "
        "result.",
        lambda d: refused(d, "Inference tensors cannot be")
        or d.field == "message" and "modified by an inplace operation" in d.theirs.message
        and bool(SAVES_MORE.search(leading_to(d))),
    ),
    Declared(
        "A compiled function is one node, which refuses changes of all that it has saved.",
        lambda d: d.program.uses("compiled")
        and (refused_by_us(d, "modified by an inplace operation")
             or d.field == "message" and "modified by an inplace operation" in d.ours.message),
    ),
    Declared(
        "A compiled function is one node, through which all its results lead to all its arguments",
        lambda d: d.program.uses("compiled")
        and (refused_by_us(d, "through the graph a second time") and goes_on_plainly(d)
             or d.field == "message" and "through the graph a second time" in d.ours.message
             and "appears to not have been used" in d.theirs.message and fails_plainly(d, d.theirs))
        and frees_a_graph(d),
    ),
    Declared(
        "What a compiled function returns or changes is not made of what it returns or changes "
        "beside it",
        lambda d: (d.field == "value" and d.ours is None
                   or refused_by_us(d, "appears to not have been used in the graph"))
        and asks_beside_compiled(d),
    ),
    Declared(
        "A graph keeps what its gradient needs, whatever is changed later.",
        lambda d: d.program.uses(*GRAPHS)
        and (refused(d, "modified by an inplace operation", "modified inplace", "a second time")
             or is_gradient(d) and d.field == "values" and ".data" in d.program.text),
    ),
    Declared(
        "A graph cannot be traced where values decide what comes next.",
        lambda d: d.field == "error" and d.ours is not None and d.ours.kind == "TraceError"
        and bool(re.search("values decide|needs the value", d.ours.message)),
    ),
    Declared(
        "The result of cond requires grad if that of either branch does.",
        lambda d: d.program.uses("cond")
        and (refused_by_us(d, "view was created in no_grad mode", "returns multiple views")
             or d.field in ("values", "grad") and "nan" in repr(d.ours)
             and differ_by_nan(d.ours, d.theirs)),
    ),
    Declared(
        "The result of cond requires grad if that of either branch does.",
        lambda d: d.program.uses("cond") and d.field == "grad" and d.theirs is None
        and not any(numbers_in(d.ours[1])),
        harmless=True,
    ),
    Declared(
        "A view made in inference mode has its base's gradient, so inference tensors beside it "
        "are refused.",
        lambda d: d.field == "error" and d.theirs is None and d.program.uses("inference_mode")
        and "Inference tensors cannot be saved" in d.ours.message,
    ),
    Declared(
        "An inference tensor that requires grad is recorded by every operator that returns no "
        "view.",
        lambda d: d.field == "message" and "Inference tensors cannot be saved" in d.ours.message
        and "does not require grad" in d.theirs.message and records_inference(d),
    ),
    Declared(
        "Integer tensors never require grad.",
        lambda d: d.field in ("requires_grad", "leaf", "node", "retains_grad") and not_floating(d)
        or refused(d, "Autograd not support dtype")
        or d.integers and goes_without_integers(d)
        or d.field == "error" and d.theirs is None and bool(ASSIGNED.search(d.program.text))
        and bool(re.search("does not require grad|doesn't require grad", d.ours.message)),
    ),
    Declared(
        "Where an assertion inside PyTorch fails, there is a result.",
        # One transform deeper, the assertion is not reached, and the gradient is lost.
        lambda d: refused(d, "INTERNAL ASSERT FAILED")
        or d.field == "values" and is_gradient(d) and d.program.uses("func") and changes(d)
        and bool(re.search(r"view_as_real|\.(real|imag)\b", d.program.text))
        and not any(numbers_in(d.theirs)),
    ),
]  # fmt: skip
