"""LBFGS: Newton's method with curvature guessed from the last gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..autograd.grad_mode import enable_grad, no_grad
from ..core.tensor import Tensor
from ..creation.factories import zeros_like
from ..operators.complex import view_as_real
from ..operators.joining import cat
from .line_search import Point, strong_wolfe
from .optimizer import Optimizer
from .rule import check_options, number, options


def _flat(values: Any) -> Any:
    """The elements of a tensor in a row; complex ones as pairs."""
    return (view_as_real(values) if values.is_complex() else values).reshape(-1)


class LBFGS(Optimizer):
    """Minimizes by up to `max_iter` quasi-Newton steps at each `step`, which needs a closure.

    The curvature comes from the last `history_size` changes of the gradient. Each step is `lr`
    long, or as long as a line search finds if `line_search_fn` is "strong_wolfe". There is one
    group of parameters.
    """

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        defaults = options(locals())
        check_options(defaults)
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Any]:
        return self.param_groups[0]["params"]

    def _gradient(self) -> Any:
        """All gradients in one row."""
        return cat([_flat(zeros_like(p) if p.grad is None else p.grad) for p in self._params])

    def _move(self, step: Any, direction: Any) -> None:
        """Add a multiple of a direction to the parameters."""
        offset = 0
        for p in self._params:
            target = view_as_real(p) if p.is_complex() else p
            part = direction[offset : offset + target.numel()]
            target.add_(part.view(target.shape) * step)
            offset += target.numel()

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Minimize further; `closure` clears the gradients, computes the loss and its gradients."""
        with no_grad():
            return self._minimize(enable_grad()(closure))

    def _minimize(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        lr = number(group["lr"])
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = closure()
        loss = float(first_loss)
        gradient = self._gradient()
        evaluations = 1
        state["func_evals"] += 1
        if gradient.abs().max() <= group["tolerance_grad"]:
            return first_loss

        for iteration in range(1, group["max_iter"] + 1):
            direction = self._direction(state, gradient)
            state["prev_flat_grad"] = gradient
            state["prev_loss"] = loss
            step = lr
            if state["n_iter"] == 1:
                step = min(1.0, 1.0 / gradient.abs().sum().item()) * lr
            state["t"] = step
            slope = gradient.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break
            last = iteration == group["max_iter"]
            if group["line_search_fn"] is not None:
                start = Point(0.0, loss, gradient, slope)
                found, used = self._search(
                    closure, start, step, direction, group["max_eval"] - evaluations
                )
                state["t"], loss, gradient, _ = found
                self._move(state["t"], direction)
            else:
                self._move(step, direction)
                used = 0
                if not last:
                    loss, gradient, used = float(closure()), self._gradient(), 1
            evaluations += used
            state["func_evals"] += used
            if (
                last
                or evaluations >= group["max_eval"]
                or gradient.abs().max() <= group["tolerance_grad"]
                or (direction * state["t"]).abs().max() <= group["tolerance_change"]
                or abs(loss - state["prev_loss"]) < group["tolerance_change"]
            ):
                break
        return first_loss

    def _search(
        self, closure: Callable[[], Any], start: Point, step: float, direction: Any, most: int
    ) -> tuple[Point, int]:
        """The point that a line search finds; the parameters stay where they are."""
        origin = [p.clone() for p in self._params]

        def evaluate(step: float) -> Point:
            self._move(step, direction)
            loss = float(closure())
            gradient = self._gradient()
            for p, known in zip(self._params, origin):
                p.copy_(known)
            return Point(step, loss, gradient, gradient.dot(direction).item())

        return strong_wolfe(evaluate, start, step, direction.abs().max().item(), most)

    def _direction(self, state: dict[str, Any], gradient: Any) -> Any:
        """The next direction, by the two loops over the history; it is kept in the state."""
        state["n_iter"] += 1
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            state["d"] = -gradient
        else:
            self._remember(state, gradient - state["prev_flat_grad"], state["d"] * state["t"])
            state["d"] = self._newton(state, -gradient)
        return state["d"]

    def _remember(self, state: dict[str, Any], change: Any, step: Any) -> None:
        """Keep a pair of changes, of the gradient and of the parameters, if it is curved upward."""
        curvature = change.dot(step)
        if curvature > 1e-10:
            new = {"old_dirs": change, "old_stps": step, "ro": 1.0 / curvature}
            for name, value in new.items():
                if len(state[name]) == self.param_groups[0]["history_size"]:
                    state[name].pop(0)
                state[name].append(value)
            state["H_diag"] = curvature / change.dot(change)

    def _newton(self, state: dict[str, Any], descent: Any) -> Any:
        """The guessed inverse of the Hessian times a vector."""
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        al = state.setdefault("al", [None] * self.param_groups[0]["history_size"])
        q = descent
        for i in reversed(range(len(changes))):
            al[i] = steps[i].dot(q) * inverses[i]
            q = q - al[i] * changes[i]
        q = q * state["H_diag"]
        for i in range(len(changes)):
            q = q + (al[i] - changes[i].dot(q) * inverses[i]) * steps[i]
        return q
