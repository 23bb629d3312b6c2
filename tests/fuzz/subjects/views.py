"""Views: of every kind, of views, of many at once, from strides."""

from __future__ import annotations

from fuzz.writing import Writer, step

WHOLE = ("view_as({x})", "unsqueeze(0)", "unsqueeze(-1)", "squeeze()", "detach()", "reshape(-1)",
         "flatten()", "view({x}.shape)", "expand(2, *{x}.shape)", "alias_copy()", "contiguous()",
         "real", "data", "movedim(0, -1)", "mT", "T", "t()", "view(-1)")  # fmt: skip


@step(weight=3, inside=True)
def whole(w: Writer) -> None:
    x = w.pick()
    if x:
        w.make(f"{x}." + w.choice(WHOLE).format(x=x))


@step(weight=4, inside=True)
def part(w: Writer) -> None:
    x = w.pick(lambda t: t.dim() > 0)
    if x is None:
        return
    t = w.value(x)
    dim = w.rng.randrange(t.dim())
    size = t.shape[dim]
    first = w.rng.randrange(size + 1)
    length = w.rng.randrange(size - first + 1)
    place = w.rng.randrange(max(size, 1))
    other = w.rng.randrange(t.dim())
    last = place % max(t.shape[-1], 1)
    turned = tuple((d + 1) % t.dim() for d in range(t.dim()))
    w.make(
        w.choice(
            (
                f"{x}[{first}:]", f"{x}[:{first}]", f"{x}[..., ::2]", f"{x}[..., {last}]",
                f"{x}.narrow({dim}, {first}, {length})", f"{x}.select({dim}, {place})",
                f"{x}.transpose({dim}, {other})", f"{x}.permute({turned})", f"{x}[None]",
                f"{x}.unfold({dim}, {min(2, size)}, 1)", f"{x}[{place % max(t.shape[0], 1)}]",
                f"{x}.swapaxes({dim}, {other})", f"{x}.squeeze({dim})",
            )
        )
    )  # fmt: skip


@step(weight=1, inside=True)
def diagonal(w: Writer) -> None:
    x = w.pick(lambda t: t.dim() >= 2)
    if x:
        w.make(f"{x}.diagonal({w.rng.randrange(-1, 2)})")


@step(weight=2, inside=True)
def strided(w: Writer) -> None:
    """A view by sizes and strides; it may overlap itself, or reach beyond a part."""
    x = w.pick(lambda t: t.numel() > 0 and (t._is_view() or t.is_contiguous()))
    if x is None:
        return
    t = w.value(x)
    span = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
    shape, strides = w.choice((((2,), (1,)), ((2, 2), (1, 1)), ((2, 2), (2, 1)), ((3,), (0,)),
                               ((1, 2), (1, 1)), ((), ())))  # fmt: skip
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
    if reach > span and w.chance(0.8):
        return
    if w.chance(0.3):
        w.make(f"{x}.as_strided({shape}, {strides})")
    else:
        start = t.storage_offset() + w.rng.randrange(max(span - reach, 0) + 1)
        w.make(f"{x}.as_strided({shape}, {strides}, {start})")


@step(weight=1.5, inside=True)
def several(w: Writer) -> None:
    x = w.pick(lambda t: t.dim() > 0 and t.shape[0] >= 2)
    if x:
        calls = ("split(1)", "chunk(2)", "unbind(0)", "split(2)", "tensor_split(2)")
        w.emit(f"{w.fresh()}, {w.fresh()} = {x}.{w.choice(calls)}[:2]")


@step(weight=0.7, inside=True)
def of_complex(w: Writer) -> None:
    x = w.pick(lambda t: t.is_complex())
    if x:
        w.make(w.choice([f"torch.view_as_real({x})", f"{x}.real", f"{x}.imag"]))
