"""The container of a saved file: a zip archive of records that are stored as they are.

All records lie in one folder of the archive. `data.pkl` is a pickle of the objects, `data/0`,
`data/1` and so on are the memory of tensors. Nothing is ever written to disk by a record's name.
"""

from __future__ import annotations

import os
import struct
import sys
import zipfile
from typing import Any, NamedTuple

FOLDER = "archive"
#: Where the memory of tensors begins in a file, as a multiple: that of PyTorch, good for mapping.
ALIGNMENT = 64
ZIP = b"PK\x03\x04"
#: How a file in the format before PyTorch 1.6 begins: a magic number as a pickle.
LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"
# Signature, ..., length of the name, length of the extra field.
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_EXTRA_HEADER = struct.Struct("<HH")
_PADDING_FIELD = 0x4246
_ZIP64_EXTRA = 20
_CHUNK = 1 << 24


def damaged(why: str) -> RuntimeError:
    """The error for a file that is not what `save` writes."""
    return RuntimeError(f"failed reading zip archive: {why}. The file is damaged or forged")


class ForwardOnly:
    """A file of which only `write` is used, so that anything with this method will do."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def write(self, data: Any) -> int:
        count = memoryview(data).nbytes
        self.file.write(data)
        return count

    def flush(self) -> None:
        if hasattr(self.file, "flush"):
            self.file.flush()


class ArchiveWriter:
    """Writes records one after the other; `close` writes the directory."""

    def __init__(self, file: Any) -> None:
        forward: Any = ForwardOnly(file)
        self._zip = zipfile.ZipFile(forward, "w")

    def write(self, name: str, data: Any) -> None:
        """Add a record of bytes, or of an array of bytes."""
        info = zipfile.ZipInfo(f"{FOLDER}/{name}")
        info.file_size = memoryview(data).nbytes
        info.extra = self._padding(info)
        with self._zip.open(info, "w") as record:
            if info.file_size:
                record.write(data)

    def _padding(self, info: zipfile.ZipInfo) -> bytes:
        """An extra field that makes the record's data begin at a multiple of ALIGNMENT."""
        begin = self._zip.start_dir + _LOCAL_HEADER.size + len(info.filename) + _EXTRA_HEADER.size
        if info.file_size * 1.05 > zipfile.ZIP64_LIMIT:  # zipfile's own rule
            begin += _ZIP64_EXTRA
        missing = -begin % ALIGNMENT
        return _EXTRA_HEADER.pack(_PADDING_FIELD, missing) + b"\0" * missing

    def close(self) -> None:
        self._zip.close()


class Record(NamedTuple):
    """Where the bytes of a record are in the file."""

    start: int
    size: int


class ArchiveReader:
    """The records of an archive by name, all of them checked to lie apart within the file."""

    def __init__(self, file: Any) -> None:
        self.file = file
        file.seek(0, os.SEEK_END)
        self.size: int = file.tell()
        self.records = self._located(self._directory())

    def _directory(self) -> list[zipfile.ZipInfo]:
        try:
            with zipfile.ZipFile(self.file) as archive:
                return archive.infolist()
        except Exception as error:  # zipfile raises nearly anything for forged directories
            raise damaged(f"failed finding central directory ({error})") from error

    def _located(self, directory: list[zipfile.ZipInfo]) -> dict[str, Record]:
        if not directory:
            raise damaged("it has no records")
        folder = directory[0].filename.partition("/")[0] + "/"
        records: dict[str, Record] = {}
        end_of_last = 0
        for info in sorted(directory, key=lambda info: info.header_offset):
            name = _checked_name(info, folder)
            if name in records:
                raise damaged(f"there are two records {name!r}")
            if info.header_offset < end_of_last:
                raise damaged(f"record {name!r} overlaps another one")
            records[name] = record = self._record(info)
            end_of_last = record.start + record.size
        return records

    def _record(self, info: zipfile.ZipInfo) -> Record:
        header = self._bytes(info.header_offset, _LOCAL_HEADER.size)
        signature, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        if signature != ZIP:
            raise damaged(f"record {info.filename!r} is not where the directory says")
        start = info.header_offset + _LOCAL_HEADER.size + name_length + extra_length
        if start + info.file_size > self.size:
            raise damaged(f"record {info.filename!r} reaches beyond the end of the file")
        return Record(start, info.file_size)

    def _bytes(self, start: int, size: int) -> bytes:
        if start < 0 or start + size > self.size:
            raise damaged("a record begins beyond the end of the file")
        self.file.seek(start)
        data: bytes = self.file.read(size)
        if len(data) != size:
            raise damaged("the file ends too early")
        return data

    def __contains__(self, name: str) -> bool:
        return name in self.records

    def find(self, name: str) -> Record:
        if name not in self.records:
            raise damaged(f"it has no record {name!r}")
        return self.records[name]

    def read(self, name: str) -> bytes:
        """The bytes of a record."""
        return self._bytes(*self.find(name))

    def read_into(self, start: int, target: memoryview) -> None:
        """Fill memory with the bytes of the file from `start` on."""
        self.file.seek(start)
        done = 0
        while done < len(target):
            part = target[done : done + _CHUNK]
            if hasattr(self.file, "readinto"):
                count = self.file.readinto(part)
            else:
                data = self.file.read(len(part))
                count = len(data)
                part[:count] = data
            if not count:
                raise damaged("the file ends too early")
            done += count

    def byte_order(self) -> str:
        """`little` or `big`; files that do not say it are from little-endian machines."""
        if "byteorder" not in self:
            return "little"
        order = self.read("byteorder") if self.find("byteorder").size <= 6 else b""
        if order not in (b"little", b"big"):
            raise damaged("its byte order is neither little nor big")
        return order.decode()

    def is_swapped(self) -> bool:
        """Whether elements have the other byte order than this machine's."""
        return self.byte_order() != sys.byteorder


def _checked_name(info: zipfile.ZipInfo, folder: str) -> str:
    """The name of a record within its folder; refuses what would be a path out of it."""
    name = info.filename
    parts = name.split("/")
    if not name.startswith(folder) or "\\" in name or not set(parts).isdisjoint(("", ".", "..")):
        raise damaged(f"record {name!r} does not lie in its folder {folder!r}")
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise damaged(f"record {name!r} is compressed, which saved files are not")
    if info.flag_bits & 1:
        raise damaged(f"record {name!r} is encrypted")
    return name[len(folder) :]


def open_archive(file: Any) -> ArchiveReader:
    """The archive in a file; refuses the older format and what is no saved file at all."""
    place = file.tell()
    begin = file.read(len(LEGACY))
    file.seek(place)
    if not begin:
        raise EOFError("Ran out of input: the file is empty")
    if begin == LEGACY:
        raise RuntimeError(
            "this file has PyTorch's older format, from before version 1.6, which is not "
            "supported. Load it with PyTorch and save it again: "
            "torch.save(torch.load('old.pt'), 'new.pt')"
        )
    if not begin.startswith(ZIP):
        raise RuntimeError(
            "failed reading zip archive: not a ZIP archive. The file was not written by "
            "wengert.save or torch.save, or its beginning is lost"
        )
    archive = ArchiveReader(file)
    if "constants.pkl" in archive:
        raise RuntimeError(
            "this file is a TorchScript archive, which is not supported. Load it with "
            "torch.jit.load and save its state_dict() by torch.save"
        )
    return archive
