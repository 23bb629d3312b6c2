"""Saving with one library and loading with another, and files made by hand."""

import io
import pickle
import zipfile


def there_and_back(writer, reader, value, **options):
    file = io.BytesIO()
    writer.save(value, file)
    file.seek(0)
    return reader.load(file, **options)


def archive(content, storages=(), *, folder="archive", extra=(), compression=zipfile.ZIP_STORED):
    """A file with a given pickle and the bytes of storages, as nobody would save it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        made.writestr(f"{folder}/data.pkl", content)
        for number, data in enumerate(storages):
            made.writestr(f"{folder}/data/{number}", data)
        made.writestr(f"{folder}/version", b"3\n")
        for name, data in extra:
            made.writestr(name, data)
    file.seek(0)
    return file


class Named:
    """A global of any module and name, for `assembled`."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Call:
    """A call of a global."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments


class Persistent:
    """What a pickle only names."""

    def __init__(self, name):
        self.name = name


def assembled(value):
    """A pickle of protocol 2 that need not make sense: calls of names that need not exist."""
    return b"\x80\x02" + _code(value) + b"."


def _code(value):
    if isinstance(value, Named):
        return f"c{value.module}\n{value.name}\n".encode()
    if isinstance(value, Call):
        return _code(value.function) + _code(tuple(value.arguments)) + b"R"
    if isinstance(value, Persistent):
        return _code(value.name) + b"Q"
    if isinstance(value, tuple):
        return b"(" + b"".join(map(_code, value)) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(map(_code, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(_code(k) + _code(v) for k, v in value.items()) + b"u"
    return pickle.dumps(value, 2)[2:-1]


FLOATS = Named("torch", "FloatStorage")
REBUILD = Named("torch._utils", "_rebuild_tensor_v2")
ORDERED = Call(Named("collections", "OrderedDict"))


def storage(key="0", count=4, kind=FLOATS, location="cpu"):
    return Persistent(("storage", kind, key, location, count))


def tensor(size=(4,), stride=(1,), offset=0, requires_grad=False, hooks=ORDERED, **storage_options):
    return Call(REBUILD, storage(**storage_options), offset, size, stride, requires_grad, hooks)
