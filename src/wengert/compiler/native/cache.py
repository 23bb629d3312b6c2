"""Files of machine code and of the programs that it belongs to, in a folder that the environment
variable WENGERT_CACHE names.

What is kept is found by a digest of what it was made from. Files are written whole under another
name first, so that several processes may share a folder; one that is damaged is made again. Where
the folder cannot be used all works without it, and says so once.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
import warnings
from pathlib import Path

FOLDER = "WENGERT_CACHE"
#: The environment variable for the size of the folder in megabytes; the oldest files go first.
LIMIT = "WENGERT_CACHE_MB"
DEFAULT_LIMIT = 256
_MAGIC = b"wengert machine code 1\n"
_SUFFIX = ".code"


@functools.cache
def _warn(folder: str, reason: str) -> None:
    warnings.warn(
        f"{FOLDER}: machine code is not kept in {folder!r}, compiling goes on without: {reason}",
        stacklevel=2,
    )


def folder() -> Path | None:
    """Where machine code is kept; None where it is not."""
    given = os.environ.get(FOLDER)
    return Path(given) if given else None


def key_of(*parts: str) -> str:
    """The name of what depends on some texts."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(str(len(encoded)).encode() + b":" + encoded)
    return digest.hexdigest()


def fetch(key: str) -> bytes | None:
    """What is kept under a name; None if there is nothing, or nothing sound."""
    where = folder()
    if where is None:
        return None
    path = where / (key + _SUFFIX)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(str(where), str(error))
        return None
    head = len(_MAGIC) + 32
    body = data[head:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : head] != hashlib.sha256(body).digest():
        _warn(str(where), f"{path.name} is damaged")
        return None
    try:
        os.utime(path)
    except OSError:  # it is only older than it need be
        pass
    return body


def store(key: str, data: bytes) -> None:
    """Keep something under a name, as far as that is possible."""
    where = folder()
    if where is None:
        return
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=where, prefix="new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(data).digest() + data)
            os.replace(name, where / (key + _SUFFIX))
        except BaseException:
            os.unlink(name)
            raise
        _shrink(where)
    except (OSError, ValueError) as error:
        _warn(str(where), str(error))


def _shrink(where: Path) -> None:
    """Remove the files that have not been used for longest until the rest fits."""
    given = os.environ.get(LIMIT, "")
    try:
        limit = (float(given) if given else DEFAULT_LIMIT) * 1e6
    except ValueError:
        raise ValueError(f"{LIMIT}={given!r} is no number of megabytes") from None
    found = []
    for path in where.glob("*" + _SUFFIX):
        try:
            status = path.stat()
        except FileNotFoundError:  # another process has removed it
            continue
        found.append((status.st_mtime, status.st_size, path))
    total = sum([size for _, size, _ in found])
    for _, size, path in sorted(found):
        if total <= limit:
            break
        path.unlink(missing_ok=True)
        total -= size
