"""Tensors in the safetensors format, by this package and by safetensors' own module for PyTorch."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import wengert

pytest.importorskip("safetensors")

from wengert.serialization import safetensors as ours


def tensors(lib):
    kinds = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8"
    made = {name: (lib.arange(6) - 2).clamp(0).to(getattr(lib, name)) for name in kinds.split()}
    made["bool"], made["scalar"] = lib.tensor([True, False]), lib.tensor(2.5)
    made["empty"], made["complex"] = lib.zeros(0, 3), lib.tensor([1 + 2j])
    made["turned"] = lib.arange(6.0).view(2, 3).t()
    made["parameter"] = lib.nn.Parameter(lib.ones(2, 2))
    return made


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert str(found[name].dtype).split(".")[1] == str(tensor.dtype).split(".")[1]
        assert list(found[name].shape) == list(tensor.shape)
        assert found[name].tolist() == tensor.tolist()


def test_there_and_back(tmp_path):
    file = tmp_path / "model.safetensors"
    ours.save_file(tensors(wengert), file, metadata={"format": "pt"})
    found = ours.load_file(file)
    same(found, tensors(wengert))
    found["float32"].add_(1)  # the memory is the tensor's own
    same(ours.load(ours.save(tensors(wengert))), tensors(wengert))


def test_files_move_both_ways(tmp_path):
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("safetensors.torch")
    file = tmp_path / "model.safetensors"
    ours.save_file(tensors(wengert), file)
    same(theirs.load_file(file), tensors(wengert))
    given = {name: t.contiguous() for name, t in tensors(torch).items()}
    theirs.save_file(given, file)
    same(ours.load_file(file), given)


def test_the_module_for_pytorch_works_under_its_name(tmp_path):
    program = (
        "import torch; from safetensors import safe_open\n"
        "from safetensors.torch import load_model, save_model\n"
        "a, b = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)\n"
        "save_model(a, 'x.safetensors'); print(load_model(b, 'x.safetensors'))\n"
        "with safe_open('x.safetensors', 'pt') as f: part = f.get_slice('weight')[:1]\n"
        "print(torch.equal(a.weight, b.weight), part.tolist() == a.weight[:1].tolist())\n"
    )
    (tmp_path / "program.py").write_text(program)
    path = str(Path(wengert.__file__).parent.parent)
    around = os.environ.get("PYTHONPATH", "")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "wengert.as_torch", "program.py"],
        cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([path, around])},
    )  # fmt: skip
    assert done.stdout == "(set(), [])\nTrue True\n", done.stderr


def test_wrong_files_and_wrong_tensors():
    from safetensors import SafetensorError

    whole = ours.save(tensors(wengert))
    choose = random.Random(0)
    for length in [0, 1, 7, 8, 9, *(choose.randrange(len(whole)) for _ in range(50))]:
        with pytest.raises(SafetensorError):
            ours.load(whole[:length])
    with pytest.raises(ValueError, match="expected wengert.Tensor but received list"):
        ours.save({"x": [1.0]})
    with pytest.raises(ValueError, match="no .*complex128"):
        ours.save({"x": wengert.zeros(1, dtype=wengert.complex128)})
