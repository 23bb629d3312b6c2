"""The package under the name torch: programs, modules, missing names, and pytest's plugin."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import wengert
from wengert.core.missing import REASONS, missing
from wengert.version import TorchVersion

PROGRAM = """
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.backends.cudnn as cudnn
import torch.utils.checkpoint
from torch import Tensor, optim
from torch.func import grad, vmap
from torch.nn.utils import clip_grad_norm_
from torch.optim.lr_scheduler import StepLR
from torch.autograd import Function
import wengert, wengert.nn.functional

assert torch is wengert and F is wengert.nn.functional and torch.nn is nn is wengert.nn
assert sys.modules["torch.nn.functional"] is wengert.nn.functional
assert nn.__name__ == "wengert.nn" and nn.__spec__.name == "wengert.nn"
assert torch.__version__ >= "2.0" and torch.__version__ >= (2, 13) and torch.__version__ < "3"
assert "wengert" in torch.__version__
cudnn.benchmark = True
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
step = optim.SGD(model.parameters(), lr=0.1)
F.mse_loss(model(torch.randn(5, 3)), torch.zeros(5, 1)).backward()
clip_grad_norm_(model.parameters(), 1.0)
step.step()
print(sys.argv[1:], __name__, round(model[0].weight[0, 0].item(), 5))
"""


def run(*arguments, folder, given=None):
    # The folder of the package that is tested, and no other one in front.
    path = os.pathsep.join([str(Path(wengert.__file__).parent.parent)])
    return subprocess.run(
        [sys.executable, "-P", *arguments], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": path}, input=given,
    )  # fmt: skip


def test_a_program_runs_unchanged(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run("-m", "wengert.as_torch", "program.py", "--lr", "1", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("['--lr', '1'] __main__ ")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    step = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.nn.functional.mse_loss(model(torch.randn(5, 3)), torch.zeros(5, 1)).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    step.step()
    assert done.stdout.split()[-1] == str(round(model[0].weight[0, 0].item(), 5))


TRAINING = """
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset, random_split

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.names = nn.Embedding(10, 8)
        self.first, self.norm = nn.Linear(12, 32), nn.LayerNorm(32)
        self.drop, self.last = nn.Dropout(0.2), nn.Linear(32, 3)
        nn.init.xavier_normal_(self.last.weight)

    def forward(self, i, x):
        h = torch.cat([self.names(i), x], dim=-1)
        return self.last(self.drop(F.gelu(self.norm(self.first(h)))))


data = TensorDataset(torch.randint(0, 10, (90,)), torch.randn(90, 4), torch.randint(0, 3, (90,)))
train, test = random_split(data, [0.8, 0.2])
loader = DataLoader(train, batch_size=16, shuffle=True, num_workers=2)
model = Net().to(device)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = CosineAnnealingLR(optimizer, 10)
scaler = torch.amp.GradScaler("cpu", enabled=False)
for epoch in range(3):
    total = 0.0
    for i, x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(i.to(device), x.to(device)), y.to(device), label_smoothing=0.1)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(model)
        total += loss.item() * len(y)
    schedule.step()
    print(f"{total / len(train):.4f}")
average.eval()
with torch.no_grad():
    print(sum((average(i, x).argmax(-1) == y).sum().item() for i, x, y in DataLoader(test, 64)))
torch.save(model.state_dict(), sys.argv[1])
print(len(torch.load(sys.argv[1])), torch.rand(1).item())
"""


@pytest.mark.slow
def test_a_training_says_what_it_says_with_pytorch(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "training.py").write_text(TRAINING)
    ours = run("-m", "wengert.as_torch", "training.py", "weights.pt", folder=tmp_path)
    theirs = run("training.py", "weights.pt", folder=tmp_path)
    assert theirs.stdout.count("\n") == 5, theirs.stderr
    assert ours.stdout == theirs.stdout, ours.stderr


def test_modules_and_neighbours(tmp_path, capsys):
    (tmp_path / "helper.py").write_text("import torch\nVALUE = torch.ones(2).sum().item()\n")
    (tmp_path / "program.py").write_text("import helper, sys\nprint(helper.VALUE, sys.argv[1])\n")
    done = run("-m", "wengert.as_torch", "program.py", "x", folder=tmp_path)
    assert done.stdout == "2.0 x\n", done.stderr
    code = "import sys; sys.path.insert(0, '.'); import wengert.as_torch as a; "
    code += "a.main(['-m', 'program', 'y'])"
    assert run("-c", code, folder=tmp_path).stdout == "2.0 y\n"
    assert wengert.as_torch.main([]) == wengert.as_torch.main(["-m"]) == 2
    assert wengert.as_torch.main(["--help"]) == 0 and "usage:" in capsys.readouterr().out


def test_errors_and_exits_are_those_of_the_program(tmp_path):
    (tmp_path / "program.py").write_text("import sys\nsys.exit(7)\n")
    assert run("-m", "wengert.as_torch", "program.py", folder=tmp_path).returncode == 7
    (tmp_path / "program.py").write_text("1 / 0\n")
    done = run("-m", "wengert.as_torch", "program.py", folder=tmp_path)
    assert "ZeroDivisionError" in done.stderr


MISSING = [
    ("from torch.distributed import all_reduce", "distributed has no .*'all_reduce': not there"),
    ("from torch.distributed.fsdp import FSDP", "distributed has no attribute 'fsdp': not there"),
    ("from torch.distributed.a.b import c", "distributed has no attribute 'a': not there yet"),
    ("from torch.jit import nothing", "jit has no .*'nothing': not planned .*nearest: compile"),
    ("import torch.fx", "wengert has no attribute 'fx': not planned because"),
    ("from torch.nn import DataParallel", "wengert.nn has no attribute 'DataParallel': not"),
    ("from torch.nn.parallel import DistributedDataParallel", "wengert.nn has no attribute 'para"),
    ("from torch.nn import Linera", "wengert.nn has no attribute 'Linera'; nearest: Linear"),
    ("import torch.onnx", "wengert has no attribute 'onnx': not planned"),
    ("from torch.utils.tensorboard import SummaryWriter", "wengert.utils has no .*'tensorboard'"),
    ("import torch; torch.hub", "wengert has no attribute 'hub': .* code from the network"),
]


def test_missing_names_say_what_they_are(tmp_path):
    lines = ["import re, wengert.as_torch", "wengert.as_torch.install()"]
    for code, phrase in MISSING:
        lines += [
            "try:",
            f"    exec({code!r})",
            "except (ImportError, AttributeError) as error:",
            f"    assert re.search({phrase!r}, str(error)), str(error)",
            "else:",
            f"    raise SystemExit({code!r})",
        ]
    lines += ["import torch", "assert not hasattr(torch, 'fx')", "print('done')"]
    done = run("-", folder=tmp_path, given="\n".join(lines))
    assert done.stdout == "done\n", done.stderr


def test_refuses_where_pytorch_is_imported_already(tmp_path):
    code = (
        "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n"
        "import wengert.as_torch\n"
        "wengert.as_torch.install()\n"
    )
    done = run("-c", code, folder=tmp_path)
    assert "RuntimeError: wengert.as_torch: PyTorch itself is imported already" in done.stderr
    twice = "import wengert.as_torch as a; a.install(); a.install(); import torch; print(torch)"
    assert "wengert" in run("-c", twice, folder=tmp_path).stdout


def test_plugin_of_pytest(tmp_path):
    (tmp_path / "conftest.py").write_text("import torch\n")
    (tmp_path / "test_it.py").write_text(
        "import torch, pytest\n"
        "def test_name():\n    assert torch.__name__ == 'wengert'\n"
        "    torch.testing.assert_close(torch.ones(2), torch.ones(2))\n"
    )
    done = run(
        "-m", "pytest", "-q", "-p", "wengert.as_torch", "-p", "no:cacheprovider", folder=tmp_path
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_pickles_of_both_names(tmp_path):
    code = (
        "import wengert.as_torch; wengert.as_torch.install()\n"
        "import torch, pickle, copy\n"
        "t = pickle.loads(pickle.dumps(torch.nn.Linear(2, 3)))\n"
        "torch.save(t.state_dict(), 'w.pt'); print(list(torch.load('w.pt')))\n"
    )
    assert run("-c", code, folder=tmp_path).stdout == "['weight', 'bias']\n"


# Names that are missing, and versions ------------------------------------------------------------


def test_reasons_are_of_names_that_are_not_there():
    for name in REASONS:
        owner = wengert
        *outer, last = name.split(".")
        for each in outer:
            owner = getattr(owner, each, None)
        assert owner is None or not hasattr(owner, last), name


def test_missing_attributes():
    with pytest.raises(AttributeError, match="wengert has no attribute 'arange_'; nearest: arange"):
        wengert.arange_
    with pytest.raises(AttributeError, match="no sparse tensors; nearest: Adam$"):
        wengert.optim.SparseAdam
    assert not hasattr(wengert, "surely_not_there")
    error = missing("wengert", "xyzzyx")
    assert str(error) == "wengert has no attribute 'xyzzyx'" and error.name == "xyzzyx"


@pytest.mark.parametrize(
    "text, other, order",
    [
        ("2.13.0", "2.9", 1),
        ("2.13.0", "2.13", 0),
        ("2.13.0", (2, 13), 0),
        ("2.13.0", (3,), -1),
        ("2.13.0a0+git1", "2.13.0", -1),
        ("2.13.0+cpu", "2.13.0", 1),
        ("2.13.0.dev20260101", "2.13.0", -1),
        ("2.13.0rc1", "2.13.0rc2", -1),
        ("2.13.0.post1", "2.13.0", 1),
        ("2.13.0", "2.13.0", 0),
        ("2.13.0", "parrot", -1),
    ],
)
def test_versions(text, other, order):
    def orders(version):
        equal = version == other
        return (version > other) - (version < other), equal, version >= other, version <= other

    expected = (order, order == 0, order >= 0, order <= 0)
    assert orders(TorchVersion(text)) == expected
    assert (TorchVersion(text) != other) == (order != 0)
    torch = pytest.importorskip("torch")
    assert orders(torch.torch_version.TorchVersion(text)) == expected


def test_version_module(lib):
    assert lib.version.cuda is None and lib.version.debug is False
    assert lib.version.__version__ == lib.__version__
    assert isinstance(wengert.__version__, str)
