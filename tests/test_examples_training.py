"""What the programs in `examples/` that train compute is right, and they learn."""

import math

import numpy as np
import pytest

import wengert
from test_examples import close, load
from wengert.func import grad, jacrev

pytest.importorskip("tqdm")


def differences(f, x, step=1e-6):
    """The derivative of a function of a vector by differences, a column for each element."""
    basis = wengert.eye(len(x), dtype=x.dtype) * step
    return wengert.stack([(f(x + e) - f(x - e)) / (2 * step) for e in basis], -1)


class TestDigits:
    def test_pictures(self):
        images, labels = load("digits").pictures(20)
        assert images.shape == (20, 1, 16, 16) and labels.unique().numel() > 5
        assert load("digits").glyphs()[1].sum() == 8

    @pytest.mark.slow
    def test_it_learns(self):
        assert load("digits").train(60, 48)[1] > 0.85


class TestCharGPT:
    def test_a_letter_depends_on_what_came_before_alone(self):
        example = load("char_gpt")
        model = example.GPT(5, 8, 8, 2, 1).eval()
        x = wengert.tensor([[0, 1, 2, 3, 4, 0, 1, 2]])
        changed = x.clone()
        changed[0, 5:] = 3
        close(model(x)[0, :5], model(changed)[0, :5], rtol=1e-5, atol=1e-6)

    @pytest.mark.slow
    def test_it_learns(self):
        _, corpus, losses = load("char_gpt").train(40, 24)
        assert losses[-1] < 0.75 * math.log(len(corpus.alphabet)) < losses[0]


class TestVAE:
    def test_the_bound_is_one(self):
        """No picture is likelier than the bound says, by importance sampling."""
        example = load("vae")
        wengert.manual_seed(0)
        model, x = example.VAE(), example.discs(1)[0]
        with wengert.no_grad():
            bounds = model.bound(x.expand(2000, -1, -1))
        assert bounds.mean() >= -(wengert.logsumexp(-bounds, 0) - math.log(2000))

    @pytest.mark.slow
    def test_it_learns_where_discs_are(self):
        model, losses = load("vae").train(200)
        assert losses[-1] < 0.7 * losses[0] and load("vae").explained(model) > 0.5


class TestNeuralODE:
    def test_adjoint_and_backward_through_the_steps_agree(self):
        example = load("neural_ode")
        model = example.Network(5).double()
        start = wengert.tensor([[0.7, -0.4]], dtype=wengert.float64, requires_grad=True)

        def through_steps():
            states = [start]
            for _ in range(20):
                states += example.runge_kutta(lambda y: (model(y[0]),), (states[-1],), 0.02)
            return wengert.stack(states)

        leaves = [start, *model.parameters()]
        weights = wengert.arange(42.0, dtype=wengert.float64).view(21, 1, 2).sin()
        expected = wengert.autograd.grad((through_steps() * weights).sum(), leaves)
        solution = example.solve(model, start, 20, 0.02)
        close(solution, through_steps(), rtol=1e-12)
        for mine, its in zip(wengert.autograd.grad((solution * weights).sum(), leaves), expected):
            close(mine, its, rtol=1e-6, atol=1e-8)

    @pytest.mark.slow
    def test_it_learns(self):
        _, losses = load("neural_ode").train(60)
        assert losses[-1] < 0.2 * losses[0]


class TestHeat:
    def test_residual(self):
        example = load("heat")
        model = example.Heat(8).double()
        x, t = wengert.tensor([[0.3, 0.6], [0.02, 0.05]], dtype=wengert.float64)
        with wengert.no_grad():
            h = 1e-4
            u_t = (model(x, t + h) - model(x, t - h)) / (2 * h)
            u_xx = (model(x + h, t) + model(x - h, t) - 2 * model(x, t)) / h**2
        close(example.residual(model, x, t), u_t - u_xx, rtol=1e-3, atol=1e-3)

    def test_start_and_ends_are_exact(self):
        example = load("heat")
        model, zero = example.Heat(8).double(), wengert.zeros(5, dtype=wengert.float64)
        x = wengert.linspace(0, 1, 5, dtype=wengert.float64)
        close(model(x, zero), example.exact(x, zero), atol=1e-12)
        close(model(wengert.tensor([0.0, 1.0]).double(), zero[:2] + 0.05), zero[:2], atol=1e-12)

    @pytest.mark.slow
    def test_it_learns(self):
        model, losses = load("heat").train(150, 64)
        assert losses[-1] < 0.05 * losses[0] and load("heat").error(model) < 0.1


class TestGaussianProcess:
    def test_cost_and_predictions(self):
        example = load("gaussian_process")
        process = example.Process(*example.data(12))
        factor = process.factor().detach()
        zero = wengert.zeros(12, dtype=wengert.float64)
        normal = wengert.distributions.MultivariateNormal(zero, factor @ factor.T)
        close(process.cost(), -normal.log_prob(process.y), rtol=1e-10)
        at = wengert.tensor([0.5, 9.0], dtype=wengert.float64)
        across = process.kernel(at, process.x).detach()
        mean, deviation = process.predict(at)
        close(mean, across @ wengert.linalg.solve(factor @ factor.T, process.y), rtol=1e-9)
        rest = process.kernel(at, at) - across @ wengert.linalg.solve(factor @ factor.T, across.T)
        close(deviation**2, rest.diagonal(), rtol=1e-8)

    def test_it_learns(self):
        process, costs = load("gaussian_process").fit(4)
        assert costs[-1] < costs[0] - 50 and 0.04 < process.logs[2].exp() < 0.2


class TestKalman:
    def test_likelihood_is_that_of_all_measurements_together(self):
        example = load("kalman")
        seen = example.measurements(6)[1]
        logs = wengert.tensor([-0.5, 0.3], dtype=wengert.float64)
        push, blur = (2 * logs).exp()
        steps = [wengert.linalg.matrix_power(example.STEP, n) for n in range(7)]
        covariance = wengert.zeros(6, 6, dtype=wengert.float64)
        for i in range(6):
            for j in range(6):
                whole = 100 * steps[i + 1] @ steps[j + 1].T
                for k in range(min(i, j) + 1):
                    whole = whole + push * steps[i - k] @ example.PUSH @ steps[j - k].T
                covariance[i, j] = whole[0, 0] + (blur if i == j else 0)
        normal = wengert.distributions.MultivariateNormal(wengert.zeros(6).double(), covariance)
        cost = example.kalman_filter(logs, seen)[0]
        close(cost, -normal.log_prob(seen), rtol=1e-9)

        def f(logs):
            return example.kalman_filter(logs, seen)[0]

        close(grad(f)(logs), differences(f, logs), rtol=1e-6)

    @pytest.mark.full
    def test_estimate(self):
        example = load("kalman")
        logs, _, costs = example.estimate(example.measurements(50)[1], 5)
        assert costs == sorted(costs, reverse=True) and costs[0] - costs[-1] > 5
        assert 1 < logs[1].exp() < 4


class TestBundleAdjustment:
    def test_system(self):
        example = load("bundle_adjustment")
        guess = example.perturbed(example.scene(3, 4))
        jacobian, residual = example.system(guess)
        whole = jacrev(lambda c, p: example.residuals(example.Scene(c, p, guess.seen)), (0, 1))
        by_camera, by_point = whole(guess.cameras, guess.points)
        parts = [by_camera.reshape(24, 18), by_point.reshape(24, 12)]
        close(jacobian, wengert.cat(parts, 1)[:, 6:], rtol=1e-9, atol=1e-12)
        close(residual, example.residuals(guess).flatten(), rtol=1e-12)
        turn = example.rotation(wengert.tensor([0.0, 0.0, math.pi / 2], dtype=wengert.float64))
        close(turn[:, 0], wengert.tensor([0.0, 1.0, 0.0]), atol=1e-12)

    def test_pictures_agree_within_their_noise(self):
        example = load("bundle_adjustment")
        guess, costs = example.adjust(example.perturbed(example.scene(4, 12)), 8)
        assert costs == sorted(costs, reverse=True)
        assert example.residuals(guess).square().mean().sqrt() < 1.2e-3


class TestNBody:
    def test_forces_energy_and_derivatives(self):
        example = load("n_body")
        throw = wengert.tensor([0.05, 1.12], dtype=wengert.float64)
        start = example.system(throw)
        places, speeds = example.leapfrog(*start, 0.02, 50)
        np.testing.assert_allclose(
            example.energy(places[-1], speeds).item(), example.energy(*start).item(), rtol=1e-4
        )
        total = (example.MASSES[:, None] * speeds).sum(0)
        close(total, (example.MASSES[:, None] * start[1]).sum(0), atol=1e-12)
        found = jacrev(lambda t: example.miss(t, 12))(throw)
        close(found, differences(lambda t: example.miss(t, 12), throw), rtol=1e-5)

    @pytest.mark.slow
    def test_aim(self):
        throw, misses = load("n_body").aim(4)
        assert misses[-1] < 0.01 * misses[0] and abs(throw.norm().item() - 1.15) < 0.05


class TestMAML:
    def test_gradients_through_a_step(self):
        example = load("maml")
        learner = example.Learner()
        wengert.manual_seed(0)
        batch = example.tasks(3, 4)
        weights = {name: w.double() for name, w in learner.weights.items()}
        batch = tuple(each.double() for each in batch)
        found = grad(lambda w: learner.after(w, batch))(weights)["4.bias"]

        def f(bias):
            return learner.after({**weights, "4.bias": bias}, batch)

        close(found, differences(f, weights["4.bias"]), rtol=1e-6)
        each = [learner.after(weights, tuple(b[i : i + 1] for b in batch)) for i in range(3)]
        close(learner.after(weights, batch), sum(each) / 3, rtol=1e-10)

    @pytest.mark.slow
    def test_it_learns_to_learn(self):
        learner = load("maml").Learner()
        wengert.manual_seed(0)
        losses = learner.train(150, 16)
        assert np.mean(losses[-10:]) < 0.6 * np.mean(losses[:10])


class TestHMC:
    def test_motion_can_be_turned_back(self):
        example = load("hmc")
        q, p = wengert.tensor([[0.3, -0.7], [1.0, 0.2]], dtype=wengert.float64)

        def density(q):
            return -(q**4).sum() / 4

        there = example.leapfrog(density, q, p, 0.1, 7)
        back = example.leapfrog(density, there[0], -there[1], 0.1, 7)
        close(back[0], q, rtol=1e-12)
        close(-back[1], p, rtol=1e-12)

    @pytest.mark.slow
    def test_samples_of_a_normal_distribution(self):
        example = load("hmc")
        covariance = wengert.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=wengert.float64)
        inverse = wengert.linalg.inv(covariance)
        wengert.manual_seed(0)
        start = wengert.randn(32, 2, dtype=wengert.float64)
        states, kept = example.sample(lambda q: -q @ inverse @ q / 2, start, 100, 0.3, 6)
        flat = states[10:].flatten(0, 1)
        assert kept > 0.8 and flat.mean(0).abs().max() < 0.15
        close(wengert.cov(flat.T), covariance, atol=0.25)
        assert example.spread_of_chains(states[10:]).max() < 1.1
