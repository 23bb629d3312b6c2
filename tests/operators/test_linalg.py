"""Linear algebra: what is refused, and how; matrices that fail; empty and singular ones."""

import subprocess
import sys

import numpy as np
import pytest

import wengert


def _raised(function):
    with pytest.raises(RuntimeError) as caught:
        function()
    return caught.value


def _one_singular(lib):
    return lib.stack([lib.eye(3), lib.tensor([[1.0, 2, 3], [2, 4, 6], [0, 0, 1]])])


FAILING = {
    "inv": lambda lib: lib.linalg.inv(_one_singular(lib)),
    "inv of one": lambda lib: lib.linalg.inv(lib.zeros(2, 2)),
    "inverse": lambda lib: lib.inverse(_one_singular(lib)),
    "inv_ex": lambda lib: lib.linalg.inv_ex(_one_singular(lib), check_errors=True),
    "solve": lambda lib: lib.linalg.solve(_one_singular(lib), lib.ones(3, 1)),
    "solve_ex": lambda lib: lib.linalg.solve_ex(
        _one_singular(lib), lib.ones(3, 1), check_errors=True
    ),
    "cholesky": lambda lib: lib.linalg.cholesky(-_one_singular(lib)),
    "cholesky of one": lambda lib: lib.linalg.cholesky(lib.zeros(2, 2)),
    "cholesky, old": lambda lib: lib.cholesky(-_one_singular(lib)),
    "cholesky_ex": lambda lib: lib.linalg.cholesky_ex(-_one_singular(lib), check_errors=True),
    "cholesky of NaN": lambda lib: lib.linalg.cholesky(lib.full((2, 2), float("nan"))),
    "cholesky of NaN, complex": lambda lib: lib.linalg.cholesky(
        lib.tensor([[[1.0, 0], [0, 1]], [[1, 0], [float("nan"), 1]]], dtype=lib.complex64)
    ),
    "cholesky_ex of NaN, upper": lambda lib: lib.linalg.cholesky_ex(
        lib.tensor([[1.0, float("nan")], [0, 1]]), upper=True, check_errors=True
    ),
    "svd": lambda lib: lib.linalg.svd(lib.full((2, 2), float("nan"))),
    "svdvals": lambda lib: lib.linalg.svdvals(lib.full((1, 2, 2), float("nan"))),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", FAILING)
def test_matrices_that_fail_are_named_as_in_pytorch(name):
    torch = pytest.importorskip("torch")
    error = _raised(lambda: FAILING[name](wengert))
    assert isinstance(error, wengert.linalg.LinAlgError)
    assert str(error) == str(_raised(lambda: FAILING[name](torch)))


REFUSED = {
    "whole numbers": lambda lib: lib.linalg.inv(lib.ones(2, 2, dtype=lib.int64)),
    "vector": lambda lib: lib.linalg.det(lib.ones(2)),
    "not square": lambda lib: lib.linalg.eigh(lib.ones(2, 3)),
    "other rows": lambda lib: lib.linalg.solve(lib.ones(2, 2), lib.ones(3, 1)),
    "other type": lambda lib: lib.linalg.solve(lib.ones(2, 2), lib.ones(2, 1).double()),
    "mode of qr": lambda lib: lib.linalg.qr(lib.ones(2, 2), mode="x"),
    "triangle": lambda lib: lib.linalg.eigh(lib.ones(2, 2), UPLO="x"),
    "NaN": lambda lib: lib.linalg.eig(lib.full((2, 2), float("nan"))),
    "order": lambda lib: lib.linalg.matrix_norm(lib.ones(2, 2), 3),
    "dims": lambda lib: lib.linalg.matrix_norm(lib.ones(2, 2), 2, (0, 0)),
    "order of three dimensions": lambda lib: lib.linalg.norm(lib.ones(2, 2, 2), 2),
    "condition": lambda lib: lib.linalg.cond(lib.ones(2, 2), "x"),
    "one factor": lambda lib: lib.linalg.multi_dot([lib.ones(2, 2)]),
    "two elements": lambda lib: lib.linalg.cross(lib.ones(2, 2), lib.ones(2, 2)),
    "driver": lambda lib: lib.linalg.lstsq(lib.ones(3, 2), lib.ones(3, 1), driver="x"),
    "rows of lstsq": lambda lib: lib.linalg.lstsq(lib.ones(3, 2), lib.ones(2, 1)),
    "tensorinv": lambda lib: lib.linalg.tensorinv(lib.ones(2, 3), ind=1),
    "tensorsolve": lambda lib: lib.linalg.tensorsolve(lib.ones(2, 3), lib.ones(2)),
    "N": lambda lib: lib.linalg.vander(lib.ones(2), N=1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_those_of_pytorch(name):
    torch = pytest.importorskip("torch")
    error = _raised(lambda: REFUSED[name](wengert))
    assert str(error) == str(_raised(lambda: REFUSED[name](torch)))


def _complex(lib):
    values = np.random.default_rng(1).normal(size=(2, 3, 3))
    return lib.tensor(values[0] + 1j * values[1]).requires_grad_()


def _tall(lib):
    return lib.tensor(np.random.default_rng(2).normal(size=(3, 2))).requires_grad_()


UNDEFINED = {
    "phase of eig": lambda lib: lib.linalg.eig(_complex(lib))[1].sum().real.backward(),
    "phase of eigh": lambda lib: lib.linalg.eigh(_complex(lib))[1].sum().real.backward(),
    "phase of svd": lambda lib: lib.linalg.svd(_complex(lib))[0].sum().real.backward(),
    "qr without Q": lambda lib: lib.linalg.qr(_tall(lib), "r")[1].sum().backward(),
    "complete qr": lambda lib: lib.linalg.qr(_tall(lib), "complete")[0].sum().backward(),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_derivatives_that_are_not_defined_are_refused(name):
    torch = pytest.importorskip("torch")
    error = _raised(lambda: UNDEFINED[name](wengert))
    assert str(error) == str(_raised(lambda: UNDEFINED[name](torch)))


def test_what_fails_is_marked_without_an_error():
    inverse, info = wengert.linalg.inv_ex(_one_singular(wengert))
    assert info.tolist() == [0, 2] or info.tolist() == [0, 3]
    assert inverse[0].equal(wengert.eye(3))
    result, info = wengert.linalg.solve_ex(_one_singular(wengert), wengert.ones(3, 1))
    assert result[0].equal(wengert.ones(3, 1))
    assert info[0] == 0 and info[1] != 0
    factor, info = wengert.linalg.cholesky_ex(wengert.stack([wengert.eye(2), -wengert.eye(2)]))
    assert info.tolist() == [0, 1]
    assert factor[0].equal(wengert.eye(2))


EMPTY = ["inv", "det", "slogdet", "eigh", "eigvalsh", "svd", "svdvals", "qr", "eig", "eigvals",
         "cholesky", "pinv", "matrix_exp", "matrix_rank"]  # fmt: skip


@pytest.mark.parametrize("shape", [(0, 0), (0, 2, 2), (2, 0, 0)])
@pytest.mark.parametrize("name", EMPTY)
def test_nothing_to_do(name, shape):
    torch = pytest.importorskip("torch")
    got, want = [getattr(lib.linalg, name)(lib.zeros(shape)) for lib in (wengert, torch)]
    got, want = [r if isinstance(r, tuple) else (r,) for r in (got, want)]
    assert [tuple(r.shape) for r in got] == [tuple(r.shape) for r in want]
    assert [r.tolist() for r in got] == [r.tolist() for r in want]


SINGULAR = {
    "rank 2": [[1.0, 2, 3], [2, 4, 6], [0, 0, 1]],
    "rank 1": [[1.0, 2, 3], [2, 4, 6], [1, 2, 3]],
    "rank 0": [[0.0, 0, 0]] * 3,
}


@pytest.mark.parametrize("name", SINGULAR)
def test_determinants_of_singular_matrices_have_a_gradient(name):
    """PyTorch's is the derivative if the gradient is recorded, and else zero."""
    torch = pytest.importorskip("torch")
    found = []
    for lib in (wengert, torch):
        x = lib.tensor(SINGULAR[name], dtype=lib.float64, requires_grad=True)
        (grad,) = lib.autograd.grad(lib.linalg.det(x), x, create_graph=True)
        found.append(grad.detach().numpy())
    np.testing.assert_allclose(*found, atol=1e-12)


@pytest.mark.parametrize("order", [None, 1, -1, 2, -2, float("inf"), "fro", "nuc"])
def test_condition_number_of_a_singular_matrix(order):
    torch = pytest.importorskip("torch")
    got, want = [lib.linalg.cond(lib.zeros(2, 2), order) for lib in (wengert, torch)]
    np.testing.assert_equal(got.numpy(), want.numpy())


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
def test_least_squares_gives_what_the_driver_finds(driver):
    torch = pytest.importorskip("torch")
    a, b = np.random.default_rng(3).normal(size=(2, 4, 4))
    got, want = [
        lib.linalg.lstsq(lib.tensor(a[:, :2].copy()), lib.tensor(b), driver=driver)
        for lib in (wengert, torch)
    ]
    for name in ("solution", "residuals", "rank", "singular_values"):
        mine, other = getattr(got, name).numpy(), getattr(want, name).numpy()
        assert mine.shape == other.shape, name
        np.testing.assert_allclose(mine, other, err_msg=name)


def test_names_of_results():
    x = wengert.eye(2)
    assert wengert.linalg.svd(x).Vh.equal(x)
    assert wengert.linalg.slogdet(x).logabsdet.item() == 0
    assert type(wengert.linalg.eigh(x)).__name__ == "linalg_eigh"
    assert type(wengert.svd(x)) is wengert.return_types.svd


def test_large_matrices_have_exponentials():
    torch = pytest.importorskip("torch")
    x = 4 * np.random.default_rng(4).normal(size=(2, 6, 6))
    got, want = [lib.linalg.matrix_exp(lib.tensor(x)).numpy() for lib in (wengert, torch)]
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8 * np.abs(want).max())


@pytest.mark.parametrize("dim", [None, (0, 1)])
def test_nuclear_norm_by_its_old_name(dim):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(5).normal(size=(3, 2))
    got, want = [lib.norm(lib.tensor(x), "nuc", dim).item() for lib in (wengert, torch)]
    np.testing.assert_allclose(got, want)


def test_import_of_the_package_does_not_import_it():
    code = "import sys, wengert; print([m for m in sys.modules if 'linalg' in m and 'weng' in m])"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "[]"


@pytest.mark.parametrize("matrix", ["eye(3)", "zeros(3, 3)", "ones(3, 3)", "eye(3)[:2]"])
@pytest.mark.parametrize(
    "name", ["svdvals", "eigvalsh", "matrix_norm 2", "matrix_norm nuc", "svd", "eigh"]
)
@pytest.mark.parametrize("way", ["eager", "grad"])
def test_values_that_coincide_have_gradients(lib, name, matrix, way):
    """Vectors, on which nothing depends, are not asked for their derivatives."""
    if "eig" in name and matrix == "eye(3)[:2]":
        return
    x = eval(f"lib.{matrix}", {"lib": lib}).double()
    call, *order = name.split()

    def loss(x):
        found = getattr(lib.linalg, call)(x, *[int(o) if o.isdigit() else o for o in order])
        return found[call == "svd"].sum() if call in ("svd", "eigh") else found.sum()

    if way == "grad":
        found = lib.func.grad(loss)(x)
    else:
        leaf = x.clone().requires_grad_()
        (found,) = lib.autograd.grad(loss(leaf), leaf)
    assert bool(found.isfinite().all())
    if name in ("eigvalsh", "eigh"):
        assert lib.allclose(found, lib.eye(3).double())


def test_vectors_of_values_that_coincide_have_none(lib):
    x = lib.eye(2, dtype=lib.float64, requires_grad=True)
    (found,) = lib.autograd.grad(lib.linalg.eigh(x)[1].abs().sum(), x)
    assert bool(found.isnan().any())
