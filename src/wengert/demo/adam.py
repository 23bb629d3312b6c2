"""The Adam update, written as ordinary tensor operations."""

from collections.abc import Sequence

import wengert
from wengert import Tensor


class Adam:
    """Moves parameters against their gradients at a rate adapted to each element."""

    def __init__(
        self,
        parameters: Sequence[Tensor],
        rate: float,
        decay: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
    ) -> None:
        self.parameters = list(parameters)
        self.rate = rate
        self.decay = decay
        self.epsilon = epsilon
        self.steps = 0
        self.means = [wengert.zeros_like(p) for p in self.parameters]
        self.squares = [wengert.zeros_like(p) for p in self.parameters]

    def step(self, gradients: Sequence[Tensor]) -> None:
        """One update with the given gradients, one for each parameter."""
        self.steps += 1
        first, second = self.decay
        rate = self.rate / (1 - first**self.steps)
        correction = 1 / (1 - second**self.steps)
        with wengert.no_grad():
            for parameter, g, mean, square in zip(
                self.parameters, gradients, self.means, self.squares
            ):
                mean.mul_(first).add_(g * (1 - first))
                square.mul_(second).add_(g * g * (1 - second))
                parameter.sub_(rate * mean / ((square * correction).sqrt() + self.epsilon))
