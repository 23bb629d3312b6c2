"""Special functions of mathematics, elementwise: ``wengert.special.ndtr(x)``.

SciPy computes them. Those that are functions of the package too are the same here.
"""

from .core.tensor import AbstractOperator as _AbstractOperator
from .dispatch.overridable import Overridable as _Overridable
from .operators import pointwise as _pointwise
from .operators import special_gamma as _gamma
from .operators.pointwise import erf as erf
from .operators.pointwise import exp2 as exp2
from .operators.pointwise import expm1 as expm1
from .operators.pointwise import log1p as log1p
from .operators.pointwise import round as round
from .operators.softmax import log_softmax as log_softmax
from .operators.softmax import logsumexp as logsumexp
from .operators.softmax import softmax as softmax
from .operators.special_bessel import airy_ai as airy_ai
from .operators.special_bessel import bessel_j0 as bessel_j0
from .operators.special_bessel import bessel_j1 as bessel_j1
from .operators.special_bessel import bessel_y0 as bessel_y0
from .operators.special_bessel import bessel_y1 as bessel_y1
from .operators.special_bessel import i0 as i0
from .operators.special_bessel import i0e as i0e
from .operators.special_bessel import i1 as i1
from .operators.special_bessel import i1e as i1e
from .operators.special_bessel import modified_bessel_i0 as modified_bessel_i0
from .operators.special_bessel import modified_bessel_i1 as modified_bessel_i1
from .operators.special_bessel import modified_bessel_k0 as modified_bessel_k0
from .operators.special_bessel import modified_bessel_k1 as modified_bessel_k1
from .operators.special_bessel import scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from .operators.special_bessel import scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from .operators.special_bessel import spherical_bessel_j0 as spherical_bessel_j0
from .operators.special_errors import entr as entr
from .operators.special_errors import erfc as erfc
from .operators.special_errors import erfcx as erfcx
from .operators.special_errors import erfinv as erfinv
from .operators.special_errors import log_ndtr as log_ndtr
from .operators.special_errors import logit as logit
from .operators.special_errors import ndtr as ndtr
from .operators.special_errors import ndtri as ndtri
from .operators.special_errors import sinc as sinc
from .operators.special_errors import xlog1py as xlog1py
from .operators.special_errors import xlogy as xlogy
from .operators.special_gamma import digamma as digamma
from .operators.special_gamma import polygamma as polygamma
from .operators.special_gamma import zeta as zeta
from .operators.special_polynomials import chebyshev_polynomial_t as chebyshev_polynomial_t
from .operators.special_polynomials import chebyshev_polynomial_u as chebyshev_polynomial_u
from .operators.special_polynomials import chebyshev_polynomial_v as chebyshev_polynomial_v
from .operators.special_polynomials import chebyshev_polynomial_w as chebyshev_polynomial_w
from .operators.special_polynomials import hermite_polynomial_h as hermite_polynomial_h
from .operators.special_polynomials import hermite_polynomial_he as hermite_polynomial_he
from .operators.special_polynomials import laguerre_polynomial_l as laguerre_polynomial_l
from .operators.special_polynomials import legendre_polynomial_p as legendre_polynomial_p
from .operators.special_polynomials import (
    shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t,
)
from .operators.special_polynomials import (
    shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u,
)
from .operators.special_polynomials import (
    shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v,
)
from .operators.special_polynomials import (
    shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w,
)

expit = _pointwise.sigmoid
psi = _gamma.digamma
gammainc = _gamma.igamma
gammaincc = _gamma.igammac
gammaln = _gamma.lgamma
multigammaln = _gamma.mvlgamma


def _make_overridable() -> None:
    """Let classes and modes override what is imported above and is no operator."""
    for name, value in list(globals().items()):
        public = callable(value) and not name.startswith("_")
        if public and not isinstance(value, _AbstractOperator):
            globals()[name] = _Overridable(value, module=__name__, name=name)


_make_overridable()
