"""The memory of large arrays, of which freed blocks are kept for the next ones.

The handler holds for the thread that `keep_blocks` is called in, since NumPy keeps it in a context
variable; arrays remember theirs. `memory.py` beside this file is the interface without C.
"""
cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New

cnp.import_array()

cdef extern from "memory.h":
    ctypedef struct PyDataMem_Handler:
        pass
    object PyDataMem_SetHandler(object handler)
    object PyDataMem_GetHandler()
    PyDataMem_Handler wengert_handler
    int WENGERT_KEEPS_MEMORY
    size_t wengert_release_memory() noexcept nogil
    void wengert_stand_on(void* handler)
    void wengert_survive_forks()
    size_t wengert_kept_bytes() noexcept nogil
    void wengert_limit_kept_bytes(size_t size)

cdef object below = PyDataMem_GetHandler()
wengert_stand_on(PyCapsule_GetPointer(below, b"mem_handler"))
wengert_survive_forks()
cdef object own = PyCapsule_New(&wengert_handler, b"mem_handler", NULL)


def keep_blocks():
    """Let arrays that this thread makes from now on take blocks that were kept."""
    if WENGERT_KEEPS_MEMORY and PyDataMem_GetHandler() is below:
        PyDataMem_SetHandler(own)


def kept_bytes():
    """How much memory is kept."""
    return wengert_kept_bytes()


def limit_kept_bytes(size_t size):
    """Keep no more than so many bytes from now on."""
    wengert_limit_kept_bytes(size)


def release_blocks():
    """Give all kept blocks back to the system, and tell how many bytes they were."""
    return wengert_release_memory()


limit_kept_bytes(256 << 20)
