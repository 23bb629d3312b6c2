"""The programs in `examples/` run, and what they compute is right."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import wengert
from wengert.compiler import differentiate, run
from wengert.compiler.passes import Policy
from wengert.func import grad, hessian, jacfwd, jacrev, vmap

FOLDER = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))


def load(name):
    spec = importlib.util.spec_from_file_location(f"examples_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def close(a, b, **tolerances):
    np.testing.assert_allclose(np.array(a.tolist()), np.array(b.tolist()), **tolerances)


#: Programs that train, in a reduced form.
REDUCED = {
    "bundle_adjustment": {"steps": 2}, "char_gpt": {"steps": 2}, "digits": {"steps": 2},
    "gaussian_process": {"steps": 1}, "heat": {"steps": 2}, "hmc": {"steps": 6, "chains": 3},
    "kalman": {"steps": 1, "count": 8}, "maml": {"steps": 2}, "n_body": {"steps": 1},
    "neural_ode": {"steps": 2}, "per_sample_gradients": {"steps": 2}, "vae": {"steps": 2},
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_runs(name, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name])
    if name == "pictures":
        pytest.importorskip("pygraphviz")
    if name in REDUCED:
        pytest.importorskip("tqdm")
    load(name).main(**REDUCED.get(name, {}))
    assert capsys.readouterr().out.strip()


def test_readme_lists_all():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert sorted(listed) == [f"{name}.py" for name in PROGRAMS]


class TestPerSampleGradients:
    def test_they_are_those_of_a_loop(self):
        example = load("per_sample_gradients")
        parameters = example.initial_parameters()
        x, labels = example.two_rings(16)
        found = example.per_sample_gradients(parameters, x, labels)
        for i in range(16):
            expected = grad(example.loss)(parameters, x[i], labels[i])
            for name, value in expected.items():
                close(found[name][i], value, rtol=1e-4, atol=1e-6)

    def test_none_is_longer_than_allowed(self):
        example = load("per_sample_gradients")
        x, labels = example.two_rings(16)
        found = example.per_sample_gradients(example.initial_parameters(), x, labels)
        mean = example.clipped_mean(found, 0.25)
        assert float(sum((g**2).sum() for g in mean.values()).sqrt()) <= 0.25 + 1e-6
        unclipped = example.clipped_mean(found, 1e9)
        close(unclipped["w1"], found["w1"].mean(0), rtol=1e-5, atol=1e-6)

    def test_training_succeeds(self):
        _, right = load("per_sample_gradients").train()
        assert right > 0.95


class TestEnsembling:
    def test_predictions_are_those_of_the_models(self):
        example = load("ensembling")
        ensemble = example.Ensemble(3)
        x = wengert.linspace(-1.0, 1.0, 7)
        expected = wengert.stack([model(x) for model in ensemble.models])
        close(ensemble.predict(x), expected, rtol=1e-5, atol=1e-6)

    def test_models_learn_and_disagree_where_nothing_is_known(self):
        example = load("ensembling")
        x, y = example.examples()
        ensemble = example.Ensemble(8)
        before = float((ensemble.predict(x) - y).abs().mean())
        ensemble.train(x, y, 600)
        assert float((ensemble.predict(x) - y).abs().mean()) < 0.1 * before
        between = wengert.linspace(-0.8, 0.8, 30)
        assert example.disagreement(ensemble, between) > 3 * example.disagreement(ensemble, x)


class TestJacobiansAndHessians:
    def test_all_ways_agree_with_differences(self):
        example = load("jacobians_and_hessians")
        f = example.network(4, 3)
        x = wengert.linspace(-0.5, 0.5, 4, dtype=wengert.float64)
        step = 1e-6
        basis = wengert.eye(4, dtype=wengert.float64) * step
        columns = [(f(x + e) - f(x - e)) / (2 * step) for e in basis]
        for found in example.jacobians(f, x).values():
            close(found, wengert.stack(columns, 1), rtol=1e-7, atol=1e-8)
        scalar = example.network(4, 1)
        assert example.spread(example.hessians(lambda x: scalar(x)[0], x)) < 1e-13

    def test_product_with_the_hessian(self):
        example = load("jacobians_and_hessians")
        network = example.network(4, 1)

        def f(x):
            return network(x)[0]

        x = wengert.linspace(-0.5, 0.5, 4, dtype=wengert.float64)
        v = wengert.linspace(1.0, 2.0, 4, dtype=wengert.float64)
        close(example.hessian_product(f, x, v), hessian(f)(x) @ v, rtol=1e-12)

    def test_laplacians(self):
        laplacian = load("jacobians_and_hessians").laplacian
        points = wengert.linspace(0.5, 2.0, 30, dtype=wengert.float64).reshape(10, 3)
        found = vmap(laplacian(lambda x: (x**3).sum()))(points)
        close(found, 6 * points.sum(1), rtol=1e-12)
        harmonic = vmap(laplacian(lambda x: 1 / (x * x).sum().sqrt()))(points)
        assert float(harmonic.abs().max()) < 1e-12


class TestFixedPoint:
    @pytest.fixture
    def example(self):
        return load("fixed_point")

    def test_solution(self, example):
        f, z = example.layer(5), wengert.linspace(-1.0, 1.0, 5, dtype=wengert.float64)
        x = example.fixed_point(f)(z)
        close(f(x, z), x, rtol=1e-10)

    @pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
    def test_derivative_is_that_of_the_unrolled_iteration(self, example, jacobian):
        f, z = example.layer(5), wengert.linspace(-1.0, 1.0, 5, dtype=wengert.float64)
        expected = jacrev(example.unrolled(f))(z)
        close(jacobian(example.fixed_point(f))(z), expected, rtol=1e-9, atol=1e-10)

    def test_derivative_by_the_implicit_function_theorem(self, example):
        f, z = example.layer(5), wengert.linspace(-1.0, 1.0, 5, dtype=wengert.float64)
        solve = example.fixed_point(f)
        x = solve(z)
        a, b = np.array(jacrev(f)(x, z).tolist()), np.array(jacrev(f, 1)(x, z).tolist())
        expected = np.linalg.solve(np.eye(5) - a, b)
        np.testing.assert_allclose(np.array(jacrev(solve)(z).tolist()), expected, rtol=1e-9)

    def test_batches_and_their_gradients(self, example):
        solve = example.fixed_point(example.layer(4))
        z = wengert.linspace(-1.0, 1.0, 12, dtype=wengert.float64).reshape(3, 4)
        close(vmap(solve)(z), wengert.stack([solve(row) for row in z]), rtol=1e-10)
        found = vmap(grad(lambda z: solve(z).sum()))(z)
        expected = wengert.stack([grad(lambda z: solve(z).sum())(row) for row in z])
        close(found, expected, rtol=1e-9, atol=1e-10)

    def test_divergence_is_reported(self, example):
        with pytest.raises(RuntimeError, match="does not converge"):
            example.fixed_point(lambda x, z: 2 * x + z)(wengert.ones(2))


class TestOptimum:
    @pytest.fixture
    def example(self):
        return load("optimum")

    def test_conjugate_gradients(self, example):
        matrix = wengert.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=wengert.float64)
        b = wengert.tensor([1.0, 2.0], dtype=wengert.float64)
        found = example.conjugate_gradients(lambda v: matrix @ v, b)
        close(matrix @ found, b, rtol=1e-10)

    def test_closed_form(self, example):
        """argmin |w - a|^2 + t |w|^2 = a / (1 + t)."""
        a = wengert.tensor([1.0, -2.0], dtype=wengert.float64)
        solve = example.minimiser(lambda w, t: ((w - a) ** 2).sum() + t * (w * w).sum(), 2)
        t = wengert.tensor(0.5, dtype=wengert.float64)
        close(solve(t), a / 1.5, rtol=1e-10)
        # one row at a time: the solver looks at numbers, which a batch does not have
        close(jacrev(solve, chunk_size=1)(t), -a / 1.5**2, rtol=1e-9)

    def test_gradient_agrees_with_differences(self, example):
        task = example.Regression()
        penalties = wengert.linspace(-4.0, -1.0, 8, dtype=wengert.float64)
        found = grad(task.validation)(penalties)
        step = 1e-5
        for i in range(8):
            e = wengert.zeros(8, dtype=wengert.float64)
            e[i] = step
            rise = task.validation(penalties + e) - task.validation(penalties - e)
            assert float(found[i]) == pytest.approx(float(rise) / (2 * step), rel=1e-5, abs=1e-9)


class TestCompileTraining:
    @pytest.fixture(params=["MLP", "LSTM", "GPT"])
    def model(self, request):
        self.example = load("compile_training")
        return next(m for m in self.example.MODELS if m.name == request.param)

    def test_one_graph_trains_as_eager_mode_does(self, model):
        step = self.example.training_step(model.loss)
        compiled = wengert.compile(step)
        losses, state = self.example.train(model, step, 6)
        its_losses, its_state = self.example.train(model, compiled, 6)
        assert len(compiled.compilations) == 1
        np.testing.assert_allclose(its_losses, losses, rtol=1e-4)
        for part, its in zip(state[:3], its_state[:3], strict=True):
            for name, value in part.items():
                close(its[name], value, rtol=1e-3, atol=1e-5)
        assert float(its_state.steps) == 6

    def test_loss_gradients_and_update_are_in_the_graph(self, model):
        before, after = self.example.step_graphs(model)
        after.lint()
        state = self.example.initial_state(model)
        changed = 3 * len(state.parameters) + 1
        assert len(before.outputs) == len(after.outputs) == 1 + changed
        assert self.example.count(after) < 0.7 * self.example.count(before)

    def test_differentiated_forward_pass(self, model):
        state = self.example.initial_state(model)
        graph = self.example.forward_graph(model)
        inputs = [p.detach() for p in state.parameters.values()] + list(model.batch())
        gradient = differentiate(graph, recompute=Policy())
        outputs = run(gradient.f, *inputs)
        found = run(gradient.df, *gradient.df_inputs(inputs, outputs, [wengert.ones(())]))
        leaves = [p.detach().requires_grad_() for p in state.parameters.values()]
        loss = model.loss(dict(zip(state.parameters, leaves, strict=True)), *inputs[-2:])
        for mine, its in zip(found, wengert.autograd.grad(loss, leaves), strict=True):
            close(mine, its, rtol=1e-3, atol=1e-6)

    def test_what_is_kept(self, model):
        kept = self.example.kept_bytes(model)
        assert kept.chosen <= kept.plain and kept.chosen <= kept.every / 2
        assert kept.products == kept.products_again
