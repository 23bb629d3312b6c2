"""An ensemble of networks, called and trained as if it were one.

`stack_module_state` puts the parameters of alike models into one set of tensors, and `vmap` over
these runs all models at once. Where the models have seen data they agree; where not, they differ.
"""

from __future__ import annotations

from collections.abc import Iterator

import wengert as torch
from wengert import Tensor
from wengert.func import functional_call, grad, stack_module_state, vmap


class Layer:
    """An affine map."""

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator) -> None:
        scale = inputs**-0.5
        self.weight = torch.randn(outputs, inputs, generator=generator) * scale
        self.bias = torch.randn(outputs, generator=generator) * 0.5

    def __call__(self, x: Tensor) -> Tensor:
        return x @ self.weight.t() + self.bias


class Curve:
    """A network from numbers to numbers; `functional_call` needs the two methods with names."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.first, self.second = Layer(1, 32, generator), Layer(32, 1, generator)
        self.first.weight = self.first.weight * 3
        self.first.bias = self.first.bias * 6

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x[:, None]).tanh())[:, 0]

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        for name in ("first", "second"):
            layer = getattr(self, name)
            yield f"{name}.weight", layer.weight
            yield f"{name}.bias", layer.bias

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        return iter(())


def examples() -> tuple[Tensor, Tensor]:
    """Values of a sine, with nothing known between -1 and 1."""
    x = torch.cat([torch.linspace(-3.0, -1.0, 20), torch.linspace(1.0, 3.0, 20)])
    return x, (2 * x).sin()


class Ensemble:
    """Models that are trained together."""

    def __init__(self, size: int) -> None:
        self.models = [Curve(seed) for seed in range(size)]
        self.parameters, _ = stack_module_state(self.models)

    def predict(self, x: Tensor) -> Tensor:
        """What each model says, model by model."""
        return vmap(self._call, in_dims=(0, None))(self.parameters, x)

    def train(self, x: Tensor, y: Tensor, steps: int, rate: float = 0.05) -> None:
        """Descend with momentum along each model's own gradient."""

        def loss(parameters: dict[str, Tensor]) -> Tensor:
            return ((self._call(parameters, x) - y) ** 2).mean()

        gradients = vmap(grad(loss))
        speed = {name: torch.zeros_like(p) for name, p in self.parameters.items()}
        for _ in range(steps):
            found = gradients(self.parameters)
            speed = {name: 0.9 * v - rate * found[name] for name, v in speed.items()}
            self.parameters = {name: p + speed[name] for name, p in self.parameters.items()}

    def _call(self, parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(self.models[0], parameters, x)


def disagreement(ensemble: Ensemble, x: Tensor) -> float:
    """The mean standard deviation of the models' answers."""
    return float(ensemble.predict(x).std(0).mean())


def main() -> None:
    x, y = examples()
    ensemble = Ensemble(20)
    ensemble.train(x, y, 1500)
    error = float((ensemble.predict(x).mean(0) - y).abs().mean())
    between = torch.linspace(-0.8, 0.8, 30)
    print(f"20 networks, trained at once: mean error {error:.3f} where there are examples")
    print(f"disagreement there {disagreement(ensemble, x):.3f}")
    print(f"disagreement between them {disagreement(ensemble, between):.3f}")


if __name__ == "__main__":
    main()
