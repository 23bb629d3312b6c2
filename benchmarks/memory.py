"""Peak memory of steps of training, above that of the process before the first, against PyTorch.

Each library runs each program in a process of its own, on one thread; the figure is the largest
resident set during some steps less the one before them.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from harness import arguments, finish, load, print_table, settings

STEPS = 5


def mlp(lib: Any) -> Callable[[], Any]:
    """784-1024-1024-10 on 1,024 examples with SGD."""
    nn = lib.nn
    layers = [nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(1024, 10))
    x, y = lib.randn(1024, 784), lib.randint(0, 10, (1024,))
    return _step(lib.optim.SGD(model.parameters(), lr=0.1),
                 lambda: nn.functional.cross_entropy(model(x), y))  # fmt: skip


def cnn(lib: Any) -> Callable[[], Any]:
    """Two convolutions with batch normalisation on 32 images of 28 by 28."""
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 49, 10),
    )  # fmt: skip
    x, y = lib.randn(32, 1, 28, 28), lib.randint(0, 10, (32,))
    return _step(lib.optim.SGD(model.parameters(), lr=0.1),
                 lambda: nn.functional.cross_entropy(model(x), y))  # fmt: skip


def gpt(lib: Any) -> Callable[[], Any]:
    """The transformer of train.py, with AdamW."""
    import train

    return train.gpt(lib).run


PROGRAMS = {"mlp": mlp, "cnn": cnn, "gpt": gpt}


def _step(optimizer: Any, loss: Callable[[], Any]) -> Callable[[], Any]:
    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def _resident() -> float:
    """Megabytes of this process that are in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def _measure(library: str, name: str) -> None:
    """Print the peak of one program in this process."""
    lib = load(library)
    lib.set_num_threads(1)
    small = lib.ones(8, requires_grad=True)
    lib.optim.AdamW([small], lr=0.1)
    (small @ small).backward()
    step = PROGRAMS[name](lib)
    before = _resident()
    for _ in range(STEPS):
        step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6 - before)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--measure", nargs=2, metavar=("LIBRARY", "PROGRAM"))
    options = parser.parse_args()
    if options.measure:
        _measure(*options.measure)
        return 0
    lines, verdicts, found = [], [], {}
    for name in PROGRAMS:
        peaks = []
        for library in ("wengert", "torch"):
            done = subprocess.run(
                [sys.executable, __file__, "--measure", library, name],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            peaks.append(float(done.stdout.split()[-1]))
        ratio = peaks[0] / peaks[1]
        found[name] = peaks
        verdicts.append(ratio <= 1.0)
        lines.append([name, f"{peaks[0]:.1f}", f"{peaks[1]:.1f}", f"{ratio:.2f}"])
    print_table(("program", "wengert MB", "torch MB", "ratio"), lines)
    return finish(options, {**settings(), "results": found}, verdicts)


if __name__ == "__main__":
    raise SystemExit(main())
