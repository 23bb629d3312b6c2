"""Idioms of programs written for PyTorch: what they print, reprs and all."""

import collections
import copy
import io
import math
import pickle
import random
import typing
import warnings

import numpy as np
import torch
import torch.nn as nn
from torch import Tensor


def g(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def mixed_indexing():
    x = torch.arange(60.0).view(3, 4, 5)
    i = torch.tensor([0, 2])
    m = torch.tensor([True, False, True, False])
    print(
        x[i, :, 1],
        x[:, m].shape,
        x[..., i].shape,
        x[None, i, ..., None].shape,
        x[i[:, None], i[None, :]].shape,
    )
    x[i, 1:3] = -1
    x[:, m, 0] = torch.ones(3, 2)
    print(x)
    x[x > 50] = 0
    print(x.sum())
    print(x[0, ..., -1], x[-1, -1, -1], x[[0, 1], [1, 2]], x[(0, 1)].shape)
    print(x[1:, ::2, [0, 3]].shape, x[i, 1, i].shape, x[:, i, 1, None].shape)
    y = x.clone()
    y[0] += 5
    y[:, 0] *= 2
    y[1, 2, 3] = y[0, 0, 0]
    print(y.sum())


def splits():
    x = torch.arange(10)
    print(
        torch.tensor_split(x, 3),
        torch.tensor_split(x, (1, 4)),
        x.chunk(4),
        x.split([3, 7]),
        torch.hsplit(x, 2),
    )
    print(torch.vsplit(x.view(5, 2), [1, 3]), x.unfold(0, 4, 3), torch.unbind(x.view(2, 5)))


def view_contiguous():
    x = torch.arange(6).view(2, 3).t()
    print(x.is_contiguous(), x.contiguous().view(-1), x.stride())


def finfo():
    for d in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        print(torch.finfo(d))
    print(
        torch.finfo(torch.float32).eps,
        torch.finfo().max,
        torch.iinfo(torch.uint8),
    )


def hooks():
    m = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    seen = {}

    def hook(name):
        def f(mod, inp, out):
            seen[name] = (type(mod).__name__, tuple(out.shape), len(inp))

        return f

    hs = [l.register_forward_hook(hook(n)) for n, l in m.named_modules() if n]
    torch.manual_seed(0)
    m(torch.ones(4, 2))
    print(seen)
    [h.remove() for h in hs]
    m[0].register_full_backward_hook(
        lambda mod, gi, go: print(
            "bw", [None if g is None else g.shape for g in gi], [g.shape for g in go]
        )
    )
    m(torch.ones(4, 2)).sum().backward()
    p = m[0].weight
    p.register_hook(lambda g: g * 2)
    p.register_post_accumulate_grad_hook(lambda p: print("acc", p.grad.shape))
    m(torch.ones(1, 2)).sum().backward()


def named():
    m = nn.ModuleDict(
        {"a": nn.Linear(2, 2), "b": nn.ModuleList([nn.BatchNorm1d(2), nn.LSTM(2, 3)])}
    )
    for n, p in m.named_parameters():
        print(n, tuple(p.shape), p.requires_grad)
    print(
        [n for n, _ in m.named_buffers()],
        [n for n, _ in m.named_modules()],
        [n for n, _ in m.named_children()],
    )
    print(m)
    print(type(m.state_dict()), list(m.state_dict().items())[0], m.state_dict()._metadata)


def where_masked():
    a = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    print(
        torch.where(a > 0, a, 0.0),
        torch.where(a > 0),
        a.masked_fill(a < 0, float("-inf")),
        a.masked_select(a > 0),
        torch.where(a > 0, 1, 0).dtype,
        a.masked_fill_(torch.eye(2, 3).bool(), 9),
    )


def cuda():
    print(
        torch.cuda.is_available(),
        torch.cuda.device_count(),
        torch.backends.mps.is_available(),
        torch.backends.cudnn.enabled,
    )
    d = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    print(
        d,
        repr(d),
        d.type,
        d.index,
        torch.device("cuda", 1),
        torch.device("cuda:1") == torch.device("cuda", 1),
    )
    torch.cuda.manual_seed_all(3)
    torch.cuda.empty_cache()
    torch.cuda.synchronize() if torch.cuda.is_available() else None
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.deterministic = True
    torch.set_float32_matmul_precision("high")
    print(torch.get_float32_matmul_precision())
    torch.use_deterministic_algorithms(True)
    print(torch.are_deterministic_algorithms_enabled())
    torch.use_deterministic_algorithms(False)


def default_dtype():
    torch.set_default_dtype(torch.float64)
    print(
        torch.ones(2),
        torch.tensor(1.5).dtype,
        torch.get_default_dtype(),
        nn.Linear(1, 1).weight.dtype,
        torch.arange(0, 1, 0.5).dtype,
    )
    torch.set_default_dtype(torch.float32)


def default_device():
    torch.set_default_device("cpu")
    print(torch.get_default_device(), torch.ones(2).device)
    with torch.device("meta"):
        l = nn.Linear(1000, 1000)
        print(l.weight.device, l.weight)
    print(l.to_empty(device="cpu").weight.shape)


def compile():
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    c = torch.compile(m)
    x = torch.randn(3, 4)
    print(torch.allclose(m(x), c(x)), list(c.state_dict()))

    @torch.compile(fullgraph=True, mode="reduce-overhead")
    def f(x):
        return (x.sin() ** 2).sum()

    print(f(x))
    c(x).sum().backward()
    print(m[0].weight.grad.sum())


def autocast():
    torch.manual_seed(0)
    l = nn.Linear(4, 4)
    x = torch.randn(2, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = l(x)
        z = y.softmax(-1)
        print(y.dtype, z.dtype, torch.is_autocast_enabled("cpu"), y)
    with torch.amp.autocast(device_type="cpu"):
        print((x @ x.T).dtype)
    with torch.cuda.amp.autocast(enabled=False):
        print(l(x).dtype)
    sc = torch.amp.GradScaler("cpu")
    o = torch.optim.SGD(l.parameters(), 0.1)
    loss = l(x).sum()
    sc.scale(loss).backward()
    sc.unscale_(o)
    print(l.weight.grad.sum())
    sc.step(o)
    sc.update()
    print(sc.get_scale(), sc.state_dict())


def reprs():
    torch.manual_seed(0)
    print(
        torch.randn(3, 3),
        torch.tensor([1, 2]),
        torch.tensor([True]),
        torch.tensor(3.14159265),
        torch.zeros(0),
        torch.zeros(2, 0),
        torch.tensor([1e-8, 1e8]),
        torch.tensor([1.0, 2.0]),
        torch.randn(2, requires_grad=True),
        torch.randn(2, requires_grad=True) * 2,
    )
    print(torch.arange(2000), torch.randn(100, 100))
    print(
        nn.Parameter(torch.ones(2)),
        torch.tensor([1 + 2j]),
        torch.tensor([1.5], dtype=torch.float16),
        torch.tensor([float("nan"), float("inf"), -1]),
    )
    torch.set_printoptions(precision=2, sci_mode=False)
    print(torch.tensor([1e-5, 123456.789]))
    torch.set_printoptions(profile="default")
    print(
        torch.Size([1, 2]),
        torch.float32,
        torch.strided,
        torch.Generator().device,
        torch.ones(2).type(),
        torch.ones(2, dtype=torch.long).type(),
        torch.preserve_format,
    )


def seed_everything():
    def seed(s):
        random.seed(s)
        np.random.seed(s)
        torch.manual_seed(s)
        torch.cuda.manual_seed(s)
        torch.cuda.manual_seed_all(s)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False

    seed(42)
    print(
        torch.rand(3),
        torch.initial_seed(),
        torch.seed() > 0,
        torch.random.get_rng_state().shape,
        torch.randint(10, (2,)).dtype,
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        torch.rand(1)


def ema():
    class EMA:
        def __init__(self, model, decay):
            self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}
            self.decay = decay

        @torch.no_grad()
        def update(self, model):
            for k, v in model.state_dict().items():
                if v.dtype.is_floating_point:
                    self.shadow[k].mul_(self.decay).add_(v, alpha=1 - self.decay)
                else:
                    self.shadow[k].copy_(v)

    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    e = EMA(m, 0.9)
    m(torch.randn(4, 2))
    e.update(m)
    print(e.shadow)
    for p, q in zip(m.parameters(), copy.deepcopy(m).parameters()):
        p.data.lerp_(q.data, 0.5)


def freeze():
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    for p in m[0].parameters():
        p.requires_grad = False
    o = torch.optim.Adam(filter(lambda p: p.requires_grad, m.parameters()), lr=1e-3)
    print(o)
    print(len(o.param_groups[0]["params"]), m.requires_grad_(True)[0].weight.requires_grad)
    m.weight_new = nn.Parameter(torch.zeros(1))
    print(sum(p.numel() for p in m.parameters()))
    print(m[0].weight.data_ptr() == m[0].weight.data.data_ptr(), m[0].weight.is_leaf)
    m.add_module("2", nn.Tanh())
    m.append(nn.ReLU())
    m.insert(0, nn.Identity())
    print(m, m[-1], m[0:2], len(m))


def optim_state():
    torch.manual_seed(0)
    l = nn.Linear(2, 1)
    o = torch.optim.Adam(l.parameters(), lr=torch.tensor(0.1))
    l(torch.ones(1, 2)).sum().backward()
    o.step()
    sd = o.state_dict()
    print(sd["state"], sorted(sd["param_groups"][0].items(), key=str))
    o2 = torch.optim.Adam(l.parameters())
    o2.load_state_dict(sd)
    print(o2.param_groups[0]["lr"], o.state[l.weight].keys())
    for gr in o.param_groups:
        gr["lr"] *= 0.5
    o.add_param_group({"params": [nn.Parameter(torch.ones(1))], "lr": 5})
    print(o)


def sched():
    o = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0, momentum=0.9)
    sc = torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=5)
    r = []
    for _ in range(5):
        o.step()
        r.append(sc.get_last_lr()[0])
        sc.step() if len(r) < 5 else None
    print(r, o.param_groups[0]["momentum"])
    sc = torch.optim.lr_scheduler.LambdaLR(o, lr_lambda=lambda e: 0.95**e)
    sc.step()
    print(sc.get_last_lr())
    print(sorted(sc.state_dict().items()))
    sc = torch.optim.lr_scheduler.StepLR(o, 2)
    sc.step()
    with torch.no_grad():
        sc.step()


def einsums():
    a, b = g(2, 3, 4), g(2, 4, 5, seed=1)
    print(
        torch.einsum("bij,bjk->bik", a, b).sum(),
        torch.einsum("...ij->...ji", a).shape,
        torch.einsum("bij->b", a),
        torch.einsum("i,j->ij", a[0, 0], a[0, 1]).shape,
        torch.einsum(a, [0, 1, 2], b, [0, 2, 3], [0, 1, 3]).shape,
    )
    print(
        torch.tensordot(a, b, dims=([2], [1])).shape,
        torch.baddbmm(g(2, 3, 5), a, b).sum(),
        torch.bmm(a, b).norm(),
        torch.linalg.multi_dot([a[0], b[0]]).shape,
        torch.kron(torch.eye(2), torch.ones(1, 2)),
    )


def numpyish():
    a = np.arange(6.0).reshape(2, 3)
    t = torch.from_numpy(a)
    t[0] = 9
    print(
        a,
        t.numpy() is not a,
        np.asarray(t).dtype,
        torch.as_tensor(a).data_ptr() == t.data_ptr(),
        torch.tensor(a, dtype=torch.float32).numpy(),
    )
    print(
        np.sin(t),
        t + np.float64(1),
        np.float32(2) * torch.ones(2),
        torch.tensor(np.int32(3)),
        torch.tensor([np.float32(1.0), 2]),
        torch.from_numpy(np.array([1, 2], dtype=np.uint8)),
        np.array(torch.ones(2, dtype=torch.bfloat16).float()),
    )
    print(
        t.__array__().shape,
        list(t),
        [x.item() for x in t.flatten()],
        t.tolist(),
        len(t),
        9.0 in t,
        t.nelement(),
        t.ndim,
        t.element_size(),
        t.nbytes,
        t.T.shape,
        t.dim(),
    )


def makes():
    print(
        torch.arange(5, 0, -2),
        torch.linspace(0, 1, 5),
        torch.logspace(0, 2, 3),
        torch.eye(2, 3),
        torch.full((2,), 7),
        torch.full((2,), 7.0),
        torch.empty(2, 3).shape,
        torch.zeros_like(torch.ones(2, dtype=torch.int)),
        torch.tril(torch.ones(3, 3)),
        torch.triu_indices(3, 3),
        torch.meshgrid(torch.arange(2), torch.arange(3), indexing="xy")[0],
        torch.cartesian_prod(torch.arange(2), torch.arange(2)),
        torch.combinations(torch.arange(3)),
        torch.ones(2).new_tensor([1, 2]),
        torch.ones(2).new_full((1,), 3),
        torch.diag_embed(torch.ones(2)),
        torch.block_diag(torch.ones(1, 1), torch.ones(1, 2)),
        torch.vander(torch.arange(3)),
        torch.hann_window(4),
        torch.FloatTensor([1, 2]),
        torch.LongTensor(2).shape,
        torch.Tensor([1, 2]).dtype,
        torch.Tensor(2, 3).shape,
        torch.BoolTensor([True]),
        torch.complex(torch.ones(1), torch.ones(1)),
        torch.polar(torch.ones(1), torch.zeros(1)),
    )


def shapes():
    a = torch.zeros(2, 3, 4)
    print(
        a.shape[1:],
        a.shape[0] * a.shape[1],
        a.size(),
        a.size(-1),
        a.shape == (2, 3, 4),
        a.flatten(1).shape,
        a.unflatten(2, (2, 2)).shape,
        a.movedim(0, -1).shape,
        a.swapaxes(0, 1).shape,
        a.squeeze().shape,
        a[None].shape,
        a.repeat(2, 1, 1).shape,
        a.expand(5, -1, -1, -1).shape,
        a.tile(2).shape,
        a.roll(1, 0).shape,
        a.flip(0, 1).shape,
        a.rot90(1, [0, 1]).shape,
        a.permute(2, 0, 1).shape,
        a.transpose(-1, -2).shape,
        a.view(-1, 4).shape,
        a.view_as(torch.zeros(6, 4)).shape,
        a.reshape_as(torch.zeros(24)).shape,
        a.ravel().shape,
        torch.broadcast_shapes((2, 1), (3,)),
        torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3))[0].shape,
        torch.atleast_2d(torch.ones(2)).shape,
        torch.column_stack([torch.ones(2), torch.ones(2)]).shape,
        torch.dstack([torch.ones(2)]).shape,
        a.unsqueeze(-1).shape,
        a.mT.shape,
        torch.squeeze(a[:1], (0,)).shape,
        a.numel(),
        [*a.shape],
        a.is_floating_point(),
        torch.is_tensor(a),
        torch.numel(a),
        a.stride(),
        a.storage_offset(),
    )
    b, c, d = a.shape
    n, *rest = a.shape
    print(
        b,
        c,
        d,
        n,
        rest,
        torch.Size((1, 2)) + torch.Size((3,)),
        hash(a.shape) == hash((2, 3, 4)),
        a.shape.numel(),
    )


def types():
    a = torch.ones(2)
    print(
        a.int().dtype == torch.int32,
        a.type(torch.LongTensor).dtype,
        a.type("torch.DoubleTensor").dtype,
        a.double().type(),
        a.half().dtype,
        a.to(torch.bool),
        a.to("cpu", torch.float64).dtype,
        a.to(a.double()).dtype,
        a.type_as(a.int()).dtype,
        torch.promote_types(torch.int32, torch.float16),
        torch.result_type(a, 1),
        torch.can_cast(torch.float, torch.int),
        (a.int() / 2).dtype,
        (a.int() // 2).dtype,
        (a.int() * 2.0).dtype,
        (torch.tensor(1) + 1.5).dtype,
        (a.half() + a).dtype,
        torch.float32.is_floating_point,
        torch.float,
        torch.long,
        a.bfloat16(),
    )

    def f(x: torch.FloatTensor, y: typing.Optional[torch.LongTensor] = None) -> torch.Tensor:
        return x

    print(
        isinstance(a, torch.FloatTensor),
        isinstance(a, Tensor),
        isinstance(nn.Parameter(a), torch.Tensor),
        isinstance(a.long(), torch.LongTensor),
        str(a.dtype),
        f"{a.dtype}",
        str(a.dtype).split(".")[-1],
        f"{a.device}",
        {a.dtype: 1},
        f"{torch.tensor(1.23456):.2f}",
        f"{torch.tensor(3)}",
        f"{a}",
        "%s" % a,
        "{:d}".format(torch.tensor(3)),
        abs(torch.tensor(-1)),
        int(torch.tensor(2.9)),
        torch.tensor(7) % 3,
        -torch.tensor(7) // 2,
        2 ** torch.arange(3),
        torch.arange(3) ** 2,
        ~torch.tensor([True]),
        torch.tensor(5) & 3,
        1 - a,
        1 / a,
        a == 1,
        a != 1,
        not a.sum(),
        range(torch.tensor(3)),
        [1, 2, 3][torch.tensor(1)],
        math.sqrt(torch.tensor(4.0)),
        sum([a, a]),
        max(torch.tensor(1), torch.tensor(2)),
        sorted(torch.tensor([3, 1, 2])),
    )


def pickles():
    m = nn.Sequential(nn.Linear(2, 2))
    b = io.BytesIO()
    torch.save(m, b)
    b.seek(0)
    print(torch.load(b, weights_only=False))
    b.seek(0)
    try:
        torch.load(b)
    except pickle.UnpicklingError as e:
        print(type(e).__name__, str(e)[:25])
    print(
        torch.equal(pickle.loads(pickle.dumps(torch.ones(2))), torch.ones(2)),
        copy.copy(m) is not m,
        copy.deepcopy(m[0].weight),
    )
    b = io.BytesIO()
    torch.save(
        {
            "a": torch.ones(2),
            "b": [1, 2.5, "x", None, True],
            "c": collections.OrderedDict(x=torch.zeros(1)),
            "d": (torch.float32, torch.Size([1])),
            "e": torch.device("cpu"),
        },
        b,
    )
    b.seek(0)
    print(torch.load(b))


def modules_more():
    print(nn.Transformer(8, 2, 1, 1, 16))
    print(
        nn.LSTM(2, 3, 2, bidirectional=True),
        nn.GRUCell(2, 3),
        nn.Conv2d(1, 2, 3, padding=1, groups=1, bias=False, padding_mode="reflect"),
        nn.ConvTranspose1d(1, 2, 3),
        nn.BatchNorm2d(3, affine=False),
        nn.Embedding(3, 2, padding_idx=0),
        nn.Softmax(dim=-1),
        nn.Dropout(0.3, True),
        nn.Upsample(scale_factor=2),
        nn.Flatten(),
        nn.Unflatten(1, (2, 2)),
        nn.PReLU(),
        nn.LeakyReLU(0.1),
        nn.GELU("tanh"),
        nn.GroupNorm(2, 4),
        nn.LayerNorm([2, 3]),
        nn.RMSNorm(4),
        nn.AdaptiveAvgPool2d((1, None)),
        nn.MultiheadAttention(4, 2),
        nn.Bilinear(1, 2, 3),
        nn.LazyLinear(4),
        nn.Hardtanh(),
        nn.ParameterList([torch.ones(2)]),
        nn.ParameterDict({"a": torch.ones(1)}),
        nn.ZeroPad2d(1),
        nn.Identity(3),
        nn.EmbeddingBag(3, 2, mode="sum"),
    )
    l = nn.LazyLinear(4)
    l(torch.ones(1, 3))
    print(l)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, function in list(globals().items()):
        if callable(function) and getattr(function, "__module__", "") == "__main__" and name != "g":
            print("#", name)
            function()
