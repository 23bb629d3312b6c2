"""Thousands of checkpoints with random damage and forgeries: one clear error, and nothing runs."""

import io
import pickle
import random
import re
import struct
import sys
import zipfile

import numpy as np
import pytest

import wengert
import width

# Both forms of the package have the same Python here: the compiled run suffices.
pytestmark = pytest.mark.slow

#: All that a bad file may raise, each with a text that says what is wrong.
REFUSALS = (pickle.UnpicklingError, RuntimeError, EOFError)
#: Events of Python that a file must not cause: code, processes, files that are written.
FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "exec", "os.remove",
             "os.rename", "os.mkdir", "shutil", "socket", "ctypes.dlopen", "os.putenv")  # fmt: skip


class Watch:
    """What happens in Python while a file is loaded."""

    active = False
    seen: list = []


def note(event, arguments):
    if Watch.active and event.startswith(FORBIDDEN):
        Watch.seen.append((event, arguments))


sys.addaudithook(note)


def saved(value):
    file = io.BytesIO()
    wengert.save(value, file)
    return file.getvalue()


def model():
    layer = wengert.nn.Sequential(wengert.nn.Linear(3, 4), wengert.nn.BatchNorm1d(4))
    optimizer = wengert.optim.Adam(layer.parameters())
    layer(wengert.ones(2, 3)).sum().backward()
    optimizer.step()
    return {
        "model": layer.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3,
        "view": wengert.arange(12.0).view(3, 4).t()[1:], "name": "text", "size": wengert.Size([2]),
    }  # fmt: skip


class Forger:
    """Damages one saved file in many ways."""

    def __init__(self, content, seed):
        self.content, self.draw = content, random.Random(seed)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            self.records = [(each.filename, archive.read(each)) for each in archive.infolist()]

    def archive(self, records):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in records:
                archive.writestr(zipfile.ZipInfo(name), content)
        return file.getvalue()

    def with_pickle(self, change):
        """The file with another pickle in it; sizes and checksums of the archive are right."""
        return self.archive(
            (name, change(bytearray(content)) if name.endswith("data.pkl") else content)
            for name, content in self.records
        )

    # Ways.

    def truncated(self):
        return self.content[: self.draw.randrange(len(self.content))]

    def flipped(self):
        content = bytearray(self.content)
        for _ in range(self.draw.choice((1, 1, 2, 8))):
            content[self.draw.randrange(len(content))] ^= 1 << self.draw.randrange(8)
        return bytes(content)

    def flipped_directory(self):
        content = bytearray(self.content)
        start = content.find(b"PK\x01\x02")
        for _ in range(self.draw.choice((1, 2, 4))):
            content[self.draw.randrange(start, len(content))] = self.draw.randrange(256)
        return bytes(content)

    def forged_archive(self):
        """Sizes, offsets and kinds in the directory and in the heads of records."""
        content = bytearray(self.content)
        mark = self.draw.choice((b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06"))
        places = [found.start() for found in re.finditer(re.escape(mark), content)]
        if places:
            place = self.draw.choice(places) + self.draw.randrange(4, 44)
            any_number = self.draw.getrandbits(32)
            number = self.draw.choice((0, 1, 2**16 - 1, 2**31, 2**32 - 1, any_number))
            content[place : place + 4] = struct.pack("<I", number)
        return bytes(content)

    def spliced(self):
        """A piece of the file in another place."""
        one, two, size = (self.draw.randrange(len(self.content)) for _ in range(3))
        size %= 200
        content = bytearray(self.content)
        content[one : one + size] = content[two : two + size]
        return bytes(content)

    def forged_names(self):
        tricks = ("../../tmp/evil", "/etc/passwd", "archive/../data.pkl", "archive/data/../../x",
                  "archive/data/0/", "archive\\data\\0", "", "archive/data/999", "x" * 5000,
                  "archive/data/0\x00.txt", "archive/data.pkl")  # fmt: skip
        at = self.draw.randrange(len(self.records))
        renamed = [
            (self.draw.choice(tricks) if number == at else name, content)
            for number, (name, content) in enumerate(self.records)
        ]
        return self.archive(renamed)

    def other_storages(self):
        """Records that are shorter or longer than the pickle says, or left out."""
        changed = []
        for name, content in self.records:
            kind = self.draw.randrange(6) if "/data/" in name else 9
            forged = {1: content[:-1], 2: content * 2}.get(kind, content)
            if kind:
                changed.append((name, forged))
        return self.archive(changed)

    def flipped_pickle(self):
        def change(content):
            for _ in range(self.draw.choice((1, 2, 4))):
                content[self.draw.randrange(len(content))] = self.draw.randrange(256)
            return bytes(content)

        return self.with_pickle(change)

    def forged_numbers(self):
        """Sizes, strides, offsets and counts in the pickle."""

        def change(content):
            places = [m.start() for m in re.finditer(rb"K.|M..|J....", bytes(content), re.DOTALL)]
            for place in self.draw.sample(places, min(3, len(places))):
                width = {75: 1, 77: 2, 74: 4}[content[place]]
                content[place + 1 : place + 1 + width] = self.draw.randbytes(width)
            return bytes(content)

        return self.with_pickle(change)

    def large_numbers(self):
        """Numbers of the pickle replaced by ones of eight or of a hundred bytes."""

        def change(content):
            places = [m.start() for m in re.finditer(rb"K.", bytes(content), re.DOTALL)]
            place = self.draw.choice(places)
            size = self.draw.choice((8, 100))
            content[place : place + 2] = b"\x8a" + bytes([size]) + self.draw.randbytes(size)
            return bytes(content)

        return self.with_pickle(change)

    def other_types(self):
        names = [b"FloatStorage", b"DoubleStorage", b"LongStorage", b"BoolStorage", b"HalfStorage",
                 b"UntypedStorage", b"QInt8Storage", b"_rebuild_tensor_v2", b"_rebuild_parameter",
                 b"OrderedDict", b"system", b"eval", b"Size"]  # fmt: skip

        def change(content):
            found = [name for name in names if name in content]
            return bytes(content).replace(self.draw.choice(found), self.draw.choice(names))

        return self.with_pickle(change)

    def calls(self):
        """Instructions that call a function, somewhere in the pickle or instead of it."""
        function = self.draw.choice((
            b"cos\nsystem\n", b"cbuiltins\neval\n", b"cbuiltins\nexec\n", b"csubprocess\nPopen\n",
            b"cposix\nsystem\n", b"cnumpy\nload\n", b"ctorch\nload\n", b"cwengert\nsave\n",
            b"cbuiltins\n__import__\n", b"cbuiltins\nopen\n", b"ctorch.jit\nload\n",
            b"ctorch.hub\nload\n", b"cpickle\nloads\n", b"cwengert.core.loading\nload\n",
        ))  # fmt: skip
        code = function + b"X\x04\x00\x00\x00exit\x85R"
        inst = b"(X\x04\x00\x00\x00exiti" + function[1:]
        reduced = self.draw.choice((code, code + b"0", inst, function + b")\x81", function + b"}b"))

        def change(content):
            if self.draw.random() < 0.3:
                return b"\x80\x02" + reduced + b"."
            place = self.draw.randrange(2, len(content))
            content[place:place] = reduced
            return bytes(content)

        return self.with_pickle(change)

    def older_format(self):
        """A pickle alone, as PyTorch saved before there were archives."""
        content = next(c for name, c in self.records if name.endswith("data.pkl"))
        return self.draw.choice((content, b"\x80\x02" + content, pickle.dumps(Evaluated())))


class Evaluated:
    """Would run code if a pickle of it were loaded."""

    def __reduce__(self):
        return eval, ("1 / 0",)


WAYS = [name for name, value in vars(Forger).items()
        if callable(value) and name not in ("__init__", "archive", "with_pickle")]  # fmt: skip


def use(value):
    """Read all that was loaded: a tensor beyond its memory would crash here."""
    if isinstance(value, dict):
        return sum(use(each) for each in value.values())
    if isinstance(value, (list, tuple)):
        return sum(use(each) for each in value)
    if isinstance(value, wengert.Tensor) and value.numel() < 10**6:
        return int(np.frombuffer(value.detach().contiguous().numpy().tobytes(), np.uint8).sum())
    return 0


def load(content, path, mmap):
    """What a damaged file does: its error, or None if it could be read."""
    Watch.seen.clear()
    Watch.active = True
    try:
        if mmap:
            path.write_bytes(content)
            loaded = wengert.load(path, mmap=True)
        else:
            loaded = wengert.load(io.BytesIO(content))
    except REFUSALS as error:
        return error
    finally:
        Watch.active = False
    use(loaded)
    return None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore")
def test_damaged_files(way, tmp_path):
    forger = Forger(saved(model()), WAYS.index(way))
    path = tmp_path / "damaged.pt"
    refused = 0
    for number in range(width.tries(40)):
        error = load(getattr(forger, way)(), path, mmap=number % 3 == 0)
        assert Watch.seen == []
        assert error is None or str(error).strip()
        refused += error is not None
    assert refused > 0
