"""Linear algebra: inverses, equations, factors, spectra and norms of batches of matrices."""

from .core.tensor import AbstractOperator as _AbstractOperator
from .dispatch.overridable import Overridable as _Overridable
from .operators import linalg_lu as _linalg_lu
from .operators.linalg_determinants import det as det
from .operators.linalg_determinants import slogdet as slogdet
from .operators.linalg_functions import cross as cross
from .operators.linalg_functions import diagonal as diagonal
from .operators.linalg_functions import matrix_exp as matrix_exp
from .operators.linalg_functions import matrix_power as matrix_power
from .operators.linalg_functions import multi_dot as multi_dot
from .operators.linalg_functions import tensorinv as tensorinv
from .operators.linalg_functions import tensorsolve as tensorsolve
from .operators.linalg_functions import vander as vander
from .operators.linalg_functions import vecdot as vecdot
from .operators.linalg_kernels import LinAlgError as LinAlgError
from .operators.linalg_ldl import ldl_factor as ldl_factor
from .operators.linalg_ldl import ldl_factor_ex as ldl_factor_ex
from .operators.linalg_ldl import ldl_solve as ldl_solve
from .operators.linalg_least_squares import lstsq as lstsq
from .operators.linalg_least_squares import pinv as pinv
from .operators.linalg_least_squares import qr as qr
from .operators.linalg_lu import lu_factor as lu_factor
from .operators.linalg_lu import lu_factor_ex as lu_factor_ex
from .operators.linalg_norms import cond as cond
from .operators.linalg_norms import matrix_norm as matrix_norm
from .operators.linalg_norms import matrix_rank as matrix_rank
from .operators.linalg_norms import norm as norm
from .operators.linalg_reflections import householder_product as householder_product
from .operators.linalg_solving import cholesky as cholesky
from .operators.linalg_solving import cholesky_ex as cholesky_ex
from .operators.linalg_solving import inv as inv
from .operators.linalg_solving import inv_ex as inv_ex
from .operators.linalg_solving import solve as solve
from .operators.linalg_solving import solve_ex as solve_ex
from .operators.linalg_solving import solve_triangular as solve_triangular
from .operators.linalg_spectral import eig as eig
from .operators.linalg_spectral import eigh as eigh
from .operators.linalg_spectral import eigvals as eigvals
from .operators.linalg_spectral import eigvalsh as eigvalsh
from .operators.linalg_spectral import svd as svd
from .operators.linalg_spectral import svdvals as svdvals
from .operators.matmul import matmul as matmul
from .operators.norms import vector_norm as vector_norm

lu = _linalg_lu.factors
lu_solve = _linalg_lu.solution


def _make_overridable() -> None:
    """Let classes and modes override what is imported above."""
    for name, value in list(globals().items()):
        public = callable(value) and not name.startswith("_") and not isinstance(value, type)
        if public and not isinstance(value, _AbstractOperator):
            globals()[name] = _Overridable(value, module=__name__, name=name)


_make_overridable()
