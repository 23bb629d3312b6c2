"""Operations that differentiate, and all that listens to it: hooks on tensors, nodes and sinks."""

import warnings

from random_programs.machine import has_edge, operation, several, values

# Hooks --------------------------------------------------------------------------------------------


@operation
def hooked(m, a, b, c):
    tensor = m.recorded(a)
    if not has_edge(tensor):
        return
    number = m.new_hook()

    def hook(gradient):
        m.log.append(("hook", number, values(gradient)))
        return gradient * 2 if c % 2 else None

    m.handles.append(tensor.register_hook(hook))


@operation
def node_hooked(m, a, b, c):
    x = m.recorded(a)
    if x._is_view() and x._version > 0:
        return  # PyTorch makes a view of a changed base again by strides
    if x.grad_fn is not None:
        add_node_hook(m, x.grad_fn, b, c)


def first_leaf(m, number):
    """One of the leaves that the program began with, or any other tensor for a large number."""
    return m.tensors[number % 3 % len(m.tensors)] if number < 9 else m.pick(number)


@operation
def sink_hooked(m, a, b, c):
    """Hooks around accumulation; the machine keeps the node, with which PyTorch drops its hooks."""
    x = first_leaf(m, a)
    if not (x.requires_grad and x.is_leaf and has_edge(x)):
        return
    node = m.lib.autograd.graph.get_gradient_edge(x).node
    m.kept.append(node)
    add_node_hook(m, node, b, c)


def add_node_hook(m, node, b, c):
    number = m.new_hook()

    def prehook(grads):
        m.log.append(("prehook", number, several(grads)))
        return doubled(grads) if c % 2 else None

    def hook(inputs, outputs):
        m.log.append(("node hook", number, several(inputs), several(outputs)))
        return doubled(inputs) if c % 2 else None

    m.handles.append(node.register_prehook(prehook) if b % 2 else node.register_hook(hook))


def doubled(grads):
    return tuple(None if g is None else g * 2 for g in grads)


@operation
def accumulation_hooked(m, a, b, c):
    x = first_leaf(m, a)
    if not (x.requires_grad and has_edge(x)):
        return
    number = m.new_hook()

    def hook(leaf):
        m.log.append(("accumulated", number, values(leaf.grad)))
        if c % 3 == 0:
            leaf.grad = None

    m.handles.append(x.register_post_accumulate_grad_hook(hook))


@operation
def commonly_hooked(m, a, b, c):
    """One hook for two tensors that are no roots of backward: PyTorch does not count these."""
    hidden = [m.operand(n) * m.constant(1) for n in (a, b)]
    if not all(t.requires_grad for t in hidden):
        return None
    number = m.new_hook()

    def hook(grads):
        m.log.append(("common", number, values(grads) if c % 2 else several(grads)))

    mode = "any" if c % 2 else "all"
    m.handles.append(m.lib.autograd.graph.register_multi_grad_hook(hidden, hook, mode=mode))
    return [t + 0 for t in hidden]


@operation
def hooked_with_backward(m, a, b, c):
    """A hook that runs another backward, and one for its end."""
    x = m.recorded(a)
    if not has_edge(x):
        return
    number = m.new_hook()
    inner = m.lib.ones(2, dtype=m.lib.float64, requires_grad=True)

    def hook(gradient):
        weight = 1 if gradient is None else gradient.detach().sum()
        with m.lib.enable_grad():
            loss = (inner * inner * weight).sum()
        loss.backward()
        m.log.append(("inner", number, values(inner.grad)))
        m.lib.autograd.Variable._execution_engine.queue_callback(
            lambda: m.log.append(("end", number))
        )

    m.handles.append(x.register_hook(hook))


@operation
def hooked_with_failure(m, a, b, c):
    x = m.recorded(a)
    if not has_edge(x):
        return
    number = m.new_hook()
    failures = [0]

    def hook(gradient):
        m.log.append(("failing", number))
        failures[0] += 1
        if failures[0] == 1:
            raise ValueError("first call")

    m.handles.append(x.register_hook(hook))


@operation
def unhooked(m, a, b, c):
    if m.handles:
        m.handles[a % len(m.handles)].remove()


@operation
def saved_by_hooks(m, a, b, c):
    """A function whose saved tensors go through hooks, once changed on the way."""
    x = m.operand(a)
    number = m.new_hook()
    factor = 1 if c % 2 else 2

    def pack(t):
        m.log.append(("pack", number, values(t)))
        return t.detach().clone()

    def unpack(t):
        return t * factor

    with m.lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        return [(x.exp() if b % 3 == 0 else x.tanh() if b % 3 == 1 else x * x)]


# Flags and gradients of tensors -------------------------------------------------------------------


def has_views(m, x):
    """Whether there are views, which in PyTorch keep a history that leads nowhere."""
    return any(tensor._base is x for tensor in m.tensors)


@operation
def retained(m, a, b, c):
    x = m.recorded(a)
    if x.output_nr and not x._is_view():
        return  # when it is changed in place later, an assertion fails in PyTorch
    if has_edge(x):
        x.retain_grad()


@operation
def required(m, a, b, c):
    x = m.pick(0)  # the newest tensor: there are no views of it yet
    if not x._is_view():
        x.requires_grad_()


@operation
def released(m, a, b, c):
    x = m.pick(a)
    if not m.hooks and not x._is_view() and not has_views(m, x):
        x.requires_grad_(False)


@operation
def detached_in_place(m, a, b, c):
    x = m.pick(a)
    if not (m.hooks or x.retains_grad or m.is_gradient(x) or has_views(m, x)):
        x.detach_()


@operation
def forgotten(m, a, b, c):
    m.pick(a).grad = None


@operation
def reused_gradient(m, a, b, c):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gradient = m.pick(a).grad
    return None if gradient is None else [gradient]


@operation
def given_gradient(m, a, b, c):
    x = m.pick(a)
    if x.is_leaf and not x._is_view():
        x.grad = weights(m, x)


@operation
def counted(m, a, b, c):
    m.lib.autograd.graph.increment_version([m.pick(a)])


# Differentiation ----------------------------------------------------------------------------------


def weights(m, x):
    """A gradient with distinct entries."""
    count = x.numel()
    entries = m.lib.tensor([0.5 + 0.25 * i for i in range(count)], dtype=m.lib.float64)
    return entries.reshape(tuple(x.shape))


def log_gradients(m):
    m.log.append(("backward", several(t.grad for t in m.tensors if t.is_leaf)))


@operation
def backward(m, a, b, c):
    root = m.recorded(a)
    inputs = (None, None, None, [m.recorded(b)], [m.recorded(b), m.recorded(b + 2)])[c % 5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root.backward(
            weights(m, root),
            retain_graph=(True, None, True, False)[b % 4],
            create_graph=c % 7 == 6,
            inputs=inputs,
        )
    log_gradients(m)


@operation
def backward_from_two(m, a, b, c):
    roots = [m.recorded(a), m.recorded(b)]
    m.lib.autograd.backward(
        roots, [weights(m, root) for root in roots], retain_graph=c % 3 > 0
    )
    log_gradients(m)


@operation
def backward_between_edges(m, a, b, c):
    root, x = m.recorded(a), m.recorded(b)
    if not (has_edge(root) and has_edge(x)):
        return
    edge = m.lib.autograd.graph.get_gradient_edge
    inputs = None if c % 3 == 0 else [edge(x)]
    m.lib.autograd.backward(edge(root), weights(m, root), retain_graph=True, inputs=inputs)
    log_gradients(m)


@operation
def grad(m, a, b, c):
    root = m.recorded(a)
    inputs = [m.recorded(b)]
    if not m.hooks:  # PyTorch captures before or after the hooks, as another input lies behind
        inputs.append(m.recorded(b + c))
    found = m.lib.autograd.grad(
        root,
        inputs,
        weights(m, root),
        retain_graph=True if c % 3 else None,
        create_graph=b % 2 == 0,
        allow_unused=c % 4 != 0,
    )
    recorded = [g is not None and g.requires_grad for g in found]
    m.log.append(("grad", several(found), recorded))
    return [g.clone() for g in found if g is not None]


@operation
def grad_between_edges(m, a, b, c):
    root, x = m.recorded(a), m.recorded(b)
    if not (has_edge(root) and has_edge(x)):
        return
    edge = m.lib.autograd.graph.get_gradient_edge
    found = m.lib.autograd.grad(
        edge(root), edge(x), weights(m, root), retain_graph=True, allow_unused=c % 2 == 0
    )
    m.log.append(("grad", several(found)))


@operation
def second_derivative(m, a, b, c):
    root, x = m.recorded(a), m.recorded(b)
    curved = (root * root).sin() if c % 3 else root
    (first,) = m.lib.autograd.grad(curved, x, weights(m, root), create_graph=True)
    m.log.append(("first", values(first), first.requires_grad))
    (second,) = m.lib.autograd.grad(
        (first * weights(m, first)).sum(), x, retain_graph=True, materialize_grads=True
    )
    m.log.append(("second", values(second)))
