"""Operations that compute, look at parts, and change tensors in place."""

from random_programs.machine import broadcasts, fits_into, is_expanded, operation, share_memory

# Functions ----------------------------------------------------------------------------------------


@operation
def unary(m, a, b, c):
    x = m.operand(a)
    return [(x.tanh, x.sin, x.neg, x.sigmoid, x.cos, x.clone, x.atan, x.square)[b % 8]()]


@operation
def exponential(m, a, b, c):
    x = m.operand(a) * m.constant(0.5)
    return [(x.exp(), (x * x + 1).log(), (x * x + 1).sqrt(), (x * x + 1).reciprocal())[b % 4]]


@operation
def power(m, a, b, c):
    x = m.operand(a)
    return [x ** (b % 4) if c % 2 else (x * x + 1) ** (b % 4 - 1.5)]


@operation
def scaled(m, a, b, c):
    x = m.operand(a)
    return [(x * m.constant(2), 3 - x, x / m.constant(4), x + 1)[b % 4]]


@operation
def binary(m, a, b, c):
    x, y = m.operand(a), m.operand(b)
    if not broadcasts(x, y):
        return None
    return [(x * y, x + y, x - y, x * y, x / (y * y + 1), m.lib.atan2(x, y * y + 1))[c % 6]]


@operation
def fused(m, a, b, c):
    x, y = m.operand(a), m.operand(b)
    if not broadcasts(x, y):
        return None
    results = (
        lambda: m.lib.addcmul(x, y, y, value=0.5),
        lambda: m.lib.lerp(x, y.expand_as(x + y), 0.25),
        lambda: m.lib.add(x, y, alpha=2),
        lambda: m.lib.where(x.detach() > 0, x, y),
        lambda: m.lib.maximum(x, y),
    )
    return [results[c % len(results)]()]


@operation
def reduction(m, a, b, c):
    x = m.operand(a)
    if x.dim() == 0 or c % 3 == 0:
        return [x.sum() if b % 2 else x.mean()]
    reduce = x.sum if b % 2 else x.mean
    return [reduce(dim=b % x.dim(), keepdim=c % 3 == 1)]


@operation
def condensed(m, a, b, c):
    x = m.operand(a)
    if x.dim() == 0 or x.numel() == 0:
        return None
    dim = c % x.dim()
    results = (
        lambda: x.logsumexp(dim),
        lambda: x.amax(dim),
        lambda: (x * x + 1).prod(dim),  # PyTorch has a rule of its own for a single zero
        lambda: (x * x + 1).norm(dim=dim),
        lambda: x.var(dim, unbiased=False),
    )
    return [results[b % len(results)]()]


@operation
def joined(m, a, b, c):
    x, y = m.operand(a), m.operand(b)
    if x.shape != y.shape or x.dim() == 0:
        return None
    join = m.lib.cat if c % 2 else m.lib.stack
    return [join([x, y], dim=c % x.dim())]


@operation
def product(m, a, b, c):
    x, y = m.operand(a), m.operand(b)
    if x.dim() == 2 and 0 < y.dim() <= 2 and x.shape[-1] == y.shape[0]:
        return [x @ y]
    if x.dim() == y.dim() == 1:
        return [m.lib.outer(x, y)]
    return None


@operation
def rearranged(m, a, b, c):
    """Some are of a temporary tensor, which PyTorch saves without need."""
    x = m.operand(a)
    if x.dim() == 0 or x.numel() == 0:
        return None
    dim = c % x.dim()
    last = x.shape[dim] - 1
    results = (
        lambda: x.sort(dim)[0] + 1,
        lambda: x.max(dim)[0] + 1,
        lambda: x.cumsum(dim),
        lambda: x.softmax(dim),
        lambda: x.log_softmax(dim),
        lambda: x.flip(dim),
        lambda: x.roll(1, dim),
        lambda: x.index_select(dim, m.lib.tensor([0, last, 0])),
        lambda: (x + 1).gather(dim, m.lib.zeros(tuple(x.shape), dtype=m.lib.int64)),
        lambda: x.index_add(dim, m.lib.tensor([last]), (x + 1).narrow(dim, 0, 1)),
        lambda: x.masked_fill(x.detach() > 0, 0.5),
        lambda: x.repeat_interleave(2, dim),
    )
    return [results[b % len(results)]()]


# Views --------------------------------------------------------------------------------------------


@operation
def reshaped(m, a, b, c):
    x = m.pick(a)
    if b % 2:
        return [x.view(-1)] if x.is_contiguous() else None
    return [x.unsqueeze(b % (x.dim() + 1))]


@operation
def transposed(m, a, b, c):
    x = m.pick(a)
    if x.dim() < 2:
        return None
    return [x.transpose(0, -1) if b % 2 else x.permute(*range(1, x.dim()), 0)]


@operation
def selected(m, a, b, c):
    x = m.pick(a)
    if x.dim() == 0 or 0 in x.shape:
        return None
    dim = b % x.dim()
    return [x.select(dim, c % x.shape[dim])]


@operation
def sliced(m, a, b, c):
    x = m.pick(a)
    if x.dim() == 0:
        return None
    return [(x[1:], x[:1], x[..., ::2], x[..., :2], x.narrow(0, 0, min(1, len(x))))[b % 5]]


@operation
def squeezed(m, a, b, c):
    x = m.pick(a)
    if x.dim() == 2 and b % 2:
        return [x.diagonal()]
    return [x.squeeze()]


@operation
def divided(m, a, b, c):
    x = m.pick(a)
    if not x.dim() or len(x) < 2:
        return None
    return list(x.split(2) if b % 2 else x.chunk(2))[:2]


@operation
def expanded(m, a, b, c):
    x = m.pick(a)
    return [x.expand(2, *x.shape)] if x.dim() < 3 else None


@operation
def unbound(m, a, b, c):
    x = m.pick(a)
    return list(x.unbind(0))[:2] if x.dim() > 1 and len(x) else None


@operation
def detached(m, a, b, c):
    return [m.pick(a).detach()]


# In-place edits -----------------------------------------------------------------------------------


@operation
def scaled_in_place(m, a, b, c):
    x = m.target(a)
    (x.mul_, x.add_, x.div_, x.sub_)[b % 4](m.constant(2))


@operation
def changed_in_place(m, a, b, c):
    x, y = m.target(a), m.operand(b)
    if fits_into(x, y):
        (x.mul_, x.add_, x.copy_, x.sub_)[c % 4](y)


@operation
def mapped_in_place(m, a, b, c):
    x = m.target(a)
    (x.tanh_, x.sin_, x.zero_, x.neg_, x.sigmoid_, x.exp_, x.square_)[b % 7]()


@operation
def assigned(m, a, b, c):
    x, y = m.target(a), m.operand(b)
    if x.dim() == 0 or x.numel() == 0 or is_expanded(x) or share_memory(x, y):
        return
    if not fits_into(x.detach()[0], y):
        return
    if c % 3 == 0:
        x[c % x.shape[0]] = 0.5
    else:
        x[c % x.shape[0]] = y


@operation
def limited_in_place(m, a, b, c):
    x = m.target(a)
    if b % 3 == 0:
        x.clamp_(-0.5, 0.5)
    elif b % 3 == 1:
        x.masked_fill_(x.detach() > 0, 0.25)
    else:
        x.fill_(0.75)


@operation
def accumulated_in_place(m, a, b, c):
    x, y = m.target(a), m.operand(b)
    if x.shape != y.shape or x.numel() == 0 or share_memory(x, y) or is_expanded(x):
        return
    index = m.lib.zeros(1, dtype=m.lib.int64)
    if c % 5 == 0:
        x.addcmul_(y, y)
    elif c % 5 == 1:
        x.lerp_(y, 0.25)
    elif c % 5 == 2:
        x[y.detach() > 0] = 0.5
    elif x.dim() and c % 5 == 3:
        x.index_add_(0, index, y[:1] + 1)
    elif x.dim():
        x.index_fill_(0, index, 0.25)


@operation
def turned_in_place(m, a, b, c):
    x = m.target(a)
    if not (x.requires_grad and m.lib.is_grad_enabled()):
        return
    if m.hooks or x.retains_grad or m.is_gradient(x):
        return  # PyTorch loses track of hooks and of a retained gradient here
    if b % 2:
        x.unsqueeze_(0)
    elif x.dim() > 1:
        x.transpose_(0, 1)
