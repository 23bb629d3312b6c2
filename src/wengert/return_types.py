"""Named tuples that operators with several results return: ``wengert.max(x, 0).indices``."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from .core.spelling import spelled


class NamedResult(tuple):
    """A tuple whose items also have the names in `fields`; made of the items or one sequence."""

    __slots__ = ()
    fields: tuple[str, ...] = ()

    def __new__(cls, *items: Any) -> NamedResult:
        if len(items) == 1 and len(cls.fields) != 1:
            items = tuple(items[0])
        if len(items) != len(cls.fields):
            raise TypeError(
                f"{cls.__name__}() takes a sequence of {len(cls.fields)} items "
                f"({len(items)} given)"
            )
        return tuple.__new__(cls, items)

    def __repr__(self) -> str:
        items = ",\n".join(f"{name}={item!r}" for name, item in zip(self.fields, self, strict=True))
        return f"{spelled('return_types')}.{type(self).__name__}(\n{items})"


class ValuesAndIndices(NamedResult):
    """Elements that were selected, and where in the input they were."""

    __slots__ = ()
    fields = ("values", "indices")
    values = property(itemgetter(0))
    indices = property(itemgetter(1))


class max(ValuesAndIndices):
    __slots__ = ()


class min(ValuesAndIndices):
    __slots__ = ()


class median(ValuesAndIndices):
    __slots__ = ()


class nanmedian(ValuesAndIndices):
    __slots__ = ()


class mode(ValuesAndIndices):
    __slots__ = ()


class kthvalue(ValuesAndIndices):
    __slots__ = ()


class sort(ValuesAndIndices):
    __slots__ = ()


class topk(ValuesAndIndices):
    __slots__ = ()


class cummax(ValuesAndIndices):
    __slots__ = ()


class cummin(ValuesAndIndices):
    __slots__ = ()


class aminmax(NamedResult):
    __slots__ = ()
    fields = ("min", "max")
    min = property(itemgetter(0))
    max = property(itemgetter(1))


class frexp(NamedResult):
    __slots__ = ()
    fields = ("mantissa", "exponent")
    mantissa = property(itemgetter(0))
    exponent = property(itemgetter(1))


def _named(name: str, *fields: str) -> type[NamedResult]:
    """A class of results with the given names."""
    body: dict[str, Any] = {each: property(itemgetter(i)) for i, each in enumerate(fields)}
    return type(name, (NamedResult,), {"__slots__": (), "fields": fields, **body})


linalg_inv_ex = _named("linalg_inv_ex", "inverse", "info")
linalg_solve_ex = _named("linalg_solve_ex", "result", "info")
linalg_cholesky_ex = _named("linalg_cholesky_ex", "L", "info")
linalg_slogdet = _named("linalg_slogdet", "sign", "logabsdet")
slogdet = _named("slogdet", "sign", "logabsdet")
linalg_qr = _named("linalg_qr", "Q", "R")
qr = _named("qr", "Q", "R")
linalg_eigh = _named("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_eig = _named("linalg_eig", "eigenvalues", "eigenvectors")
linalg_svd = _named("linalg_svd", "U", "S", "Vh")
svd = _named("svd", "U", "S", "V")
linalg_lstsq = _named("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
triangular_solve = _named("triangular_solve", "solution", "cloned_coefficient")
linalg_lu_factor = _named("linalg_lu_factor", "LU", "pivots")
linalg_lu_factor_ex = _named("linalg_lu_factor_ex", "LU", "pivots", "info")
linalg_lu = _named("linalg_lu", "P", "L", "U")
lu_unpack = _named("lu_unpack", "P", "L", "U")
linalg_ldl_factor = _named("linalg_ldl_factor", "LD", "pivots")
linalg_ldl_factor_ex = _named("linalg_ldl_factor_ex", "LD", "pivots", "info")
geqrf = _named("geqrf", "a", "tau")
histogram = _named("histogram", "hist", "bin_edges")
histogramdd = _named("histogramdd", "hist", "bin_edges")
