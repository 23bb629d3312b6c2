# cython: boundscheck=False, wraparound=False
"""Elementwise loops over float32 and float64 arrays of any size, written by tools/loops.py.

A loop runs over contiguous memory. Operands that are broadcast or have gaps pass through blocks,
and large results are split into parts that threads take; how they are split does not depend on the
number of threads. Whatever a loop does not suit is answered by None, and NumPy computes it.
`vector_loops.py` beside this file is the interface without C.
"""
cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from libc.math cimport isinf
from libc.stdint cimport int64_t
from libc.string cimport memcpy, strlen

from ..core.array_checks cimport same_dims
from ..core.reuse cimport new_like
from ..core.ndarrays cimport NDArrays
from ..core.pool cimport split

import os
from ast import literal_eval

from ..core.ndarrays import ndarrays as shared_ndarrays

cnp.import_array()

cdef extern from "vector_loops.h":
    ctypedef struct wengert_entry:
        const char* key
        const char* roles
        const char* literals
    const wengert_entry wengert_entries[]
    const int wengert_entry_count
    const loop_t* wengert_loops_of[3][2]
    ctypedef struct wengert_rows:
        pass
    const wengert_rows* wengert_rows_of[3][2]
    int wengert_instruction_set()

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewLikeArray(
        cnp.ndarray prototype, cnp.NPY_ORDER order, PyObject* descr, int subok)
    bint PyArray_CHKFLAGS(cnp.ndarray a, int flags)

cdef enum:
    MOST_OPERANDS = 6
    MOST_DIMENSIONS = 12
    BLOCK = 1024       # elements of operands that are copied to be contiguous
    SHORT_BLOCK = 256  # the same where an element is repeated along rows that are not long
    PART = 32768       # elements that one thread takes at a time
    QUICK = 4096       # elements below which the interpreter's lock is kept
    SHORTEST = 8       # elements in a row that are worth calling a loop for

cdef NDArrays ndarrays = shared_ndarrays


cdef struct Job:
    # Operands as rows of `length` elements in `outer` dimensions, as far as they are not merged.
    loop_t loop
    const double* numbers
    int count, outer, itemsize
    int sizes[MOST_OPERANDS]  # of their elements
    char* data[MOST_OPERANDS]
    char* out
    int64_t total, length, rows, rows_per_part, pieces, piece, block
    int64_t together  # rows that pass through blocks at once
    int64_t dims[MOST_DIMENSIONS]
    int64_t strides[MOST_OPERANDS][MOST_DIMENSIONS]
    int64_t inner[MOST_OPERANDS]
    bint whole[MOST_OPERANDS]  # whether all rows lie one behind the other, as those of the result do


cdef void run_flat(void* data, int64_t part) noexcept nogil:
    """One part of operands that are contiguous and of one shape."""
    cdef Job* job = <Job*>data
    cdef char* operands[MOST_OPERANDS]
    cdef int64_t begin = part * PART, count = job.total - begin
    cdef int i
    if count > PART:
        count = PART
    for i in range(job.count):
        operands[i] = job.data[i] + begin * job.sizes[i]
    job.loop(<const char* const*>operands, job.numbers, job.out + begin * job.itemsize, count)


cdef void run_all(Job* job) noexcept:
    """All parts of operands that are contiguous and of one shape."""
    if job.total < QUICK:
        job.loop(<const char* const*>job.data, job.numbers, job.out, job.total)
        return
    with nogil:
        split(run_flat, job, (job.total + PART - 1) // PART)


cdef void fill_block(
    char* block, const char* source, int64_t stride, int64_t count, int itemsize
) noexcept nogil:
    """Elements one behind the other."""
    cdef int64_t i
    cdef float single
    cdef double real
    if stride == itemsize:
        memcpy(block, source, count * itemsize)
    elif stride == 0:
        if itemsize == 4:
            single = (<const float*>source)[0]
            for i in range(count):
                (<float*>block)[i] = single
        else:
            real = (<const double*>source)[0]
            for i in range(count):
                (<double*>block)[i] = real
    elif itemsize == 4:
        for i in range(count):
            (<float*>block)[i] = (<const float*>(source + i * stride))[0]
    else:
        for i in range(count):
            (<double*>block)[i] = (<const double*>(source + i * stride))[0]


cdef void run_row(
    Job* job, char** row, char* out, char* blocks, int64_t begin, int64_t end
) noexcept nogil:
    """Elements of a row, by blocks if operands are not contiguous there."""
    cdef char* operands[MOST_OPERANDS]
    cdef int64_t count, first = begin
    cdef int i
    cdef bint gaps = False
    for i in range(job.count):
        operands[i] = row[i] + begin * job.inner[i]
        gaps = gaps or job.inner[i] != job.itemsize
    if not gaps:
        job.loop(
            <const char* const*>operands, job.numbers, out + begin * job.itemsize, end - begin)
        return
    while begin < end:
        count = min(end - begin, job.block)
        for i in range(job.count):
            operands[i] = row[i] + begin * job.inner[i]
            if job.inner[i] != job.itemsize:
                # What is one number for the whole row is in the block already.
                if job.inner[i] or begin == first:
                    fill_block(blocks + i * BLOCK * 8, operands[i], job.inner[i], count, job.itemsize)
                operands[i] = blocks + i * BLOCK * 8
        job.loop(<const char* const*>operands, job.numbers, out + begin * job.itemsize, count)
        begin += count


cdef void advance(Job* job, char** row, int64_t* index, int64_t count) noexcept nogil:
    """Move on by so many rows, no further than the innermost dimension of rows has."""
    cdef int i, dim = job.outer - 1
    while dim >= 0:
        index[dim] += count
        for i in range(job.count):
            row[i] += count * job.strides[i][dim]
        if index[dim] < job.dims[dim]:
            return
        for i in range(job.count):
            row[i] -= job.dims[dim] * job.strides[i][dim]
        index[dim] = 0
        count = 1
        dim -= 1


cdef void run_together(
    Job* job, char** row, int64_t* index, char* blocks, int64_t at, int64_t end
) noexcept nogil:
    """Short rows, as many at once as blocks have room for.

    A loop that read a block as soon as one row is written would wait for the writes.
    """
    cdef char* operands[MOST_OPERANDS]
    cdef char* block
    cdef char* source
    cdef int64_t size = job.length * job.itemsize, step, count, done, run, r
    cdef int i, last = job.outer - 1
    while at < end:
        count = min(end - at, job.together)
        done = 0
        while done < count:
            run = min(count - done, job.dims[last] - index[last])
            for i in range(job.count):
                if not job.whole[i]:
                    block, source = blocks + i * BLOCK * 8 + done * size, row[i]
                    step = job.strides[i][last]
                    for r in range(run):
                        fill_block(
                            block + r * size, source + r * step, job.inner[i], job.length,
                            job.itemsize)
            advance(job, row, index, run)
            done += run
        for i in range(job.count):
            operands[i] = job.data[i] + at * size if job.whole[i] else blocks + i * BLOCK * 8
        job.loop(
            <const char* const*>operands, job.numbers, job.out + at * size, count * job.length)
        at += count


cdef void run_rows(void* data, int64_t part) noexcept nogil:
    """Some rows of operands of which not all are contiguous."""
    cdef Job* job = <Job*>data
    cdef char blocks[MOST_OPERANDS * BLOCK * 8]
    cdef char* row[MOST_OPERANDS]
    cdef int64_t index[MOST_DIMENSIONS]
    cdef int64_t at = part // job.pieces * job.rows_per_part, end = at + job.rows_per_part
    cdef int64_t begin = part % job.pieces * job.piece, stop = begin + job.piece, rest = at
    cdef int i, dim
    if stop > job.length:
        stop = job.length
    if end > job.rows:
        end = job.rows
    for i in range(job.count):
        row[i] = job.data[i]
    for dim in range(job.outer - 1, -1, -1):
        index[dim] = rest % job.dims[dim]
        rest //= job.dims[dim]
        for i in range(job.count):
            row[i] += index[dim] * job.strides[i][dim]
    if job.together > 1:
        run_together(job, row, index, blocks, at, end)
        return
    while at < end:
        run_row(job, row, job.out + at * job.length * job.itemsize, blocks, begin, stop)
        at += 1
        advance(job, row, index, 1)


cdef bint broadcast(Job* job, cnp.ndarray a, int place, int ndim) noexcept:
    """Put the strides of an operand into the dimensions of the result; False if it does not fit."""
    cdef int own = cnp.PyArray_NDIM(a), d, i
    for d in range(ndim):
        i = d - (ndim - own)
        if i < 0 or cnp.PyArray_DIM(a, i) == 1:
            job.strides[place][d] = 0
        elif cnp.PyArray_DIM(a, i) == job.dims[d]:
            job.strides[place][d] = cnp.PyArray_STRIDE(a, i)
        else:
            return False
    return True


cdef void merge(Job* job, int ndim) noexcept:
    """Merge dimensions as far as all operands allow, and set the last one apart as the rows."""
    cdef int d, i, kept = 0
    cdef int64_t size
    cdef bint joins, gaps = False
    for d in range(ndim):
        if job.dims[d] == 1:
            continue
        joins = kept > 0
        if joins:
            for i in range(job.count):
                if job.strides[i][kept - 1] != job.dims[d] * job.strides[i][d]:
                    joins = False
                    break
        if joins:
            job.dims[kept - 1] *= job.dims[d]
        else:
            job.dims[kept] = job.dims[d]
            kept += 1
        for i in range(job.count):
            job.strides[i][kept - 1] = job.strides[i][d]
    if kept == 0:
        job.dims[0] = 1
        for i in range(job.count):
            job.strides[i][0] = job.itemsize
        kept = 1
    job.outer = kept - 1
    job.length = job.dims[kept - 1]
    job.rows = 1
    for d in range(kept - 1):
        job.rows *= job.dims[d]
    for i in range(job.count):
        job.inner[i] = job.strides[i][kept - 1]
        gaps = gaps or job.inner[i] != job.itemsize
        job.whole[i] = True
        size = job.itemsize
        for d in range(kept - 1, -1, -1):
            job.whole[i] = job.whole[i] and job.strides[i][d] == size
            size *= job.dims[d]
    job.together = BLOCK // job.length if gaps and job.rows > 1 else 1


cdef class NativeLoop:
    """What computes an operator or a gradient rule on plain arrays, where they suit it."""

    cpdef object run(self, tuple values):
        """The result for arrays and other arguments in order; None if they do not suit."""
        return None

    cpdef bint run_into(self, tuple values, object out):
        """Write the result into an array; False, with nothing written, if it does not suit."""
        return False


@cython.final
cdef class VectorLoop(NativeLoop):
    """A loop in single and double precision; `other` holds for other values of literals."""

    cpdef object run(self, tuple values):
        """The result for arrays and numbers in order; None if they do not suit the loop."""
        cdef VectorLoop loop = self
        while loop is not None:
            if loop.literals is None or loop.holds_for(values):
                return loop.compute(values, None)
            loop = loop.other
        return None

    cdef object run_one(self, object value):
        """The result for one contiguous array, of a loop of no other operands; else None."""
        cdef Job job
        cdef cnp.ndarray a, out
        cdef int kind
        if not cnp.PyArray_CheckExact(value):
            return None
        a = <cnp.ndarray>value
        kind = cnp.PyArray_TYPE(a)
        if kind != cnp.NPY_FLOAT and kind != cnp.NPY_DOUBLE or not cnp.PyArray_ISCARRAY_RO(a):
            return None
        out = <cnp.ndarray>new_like(a)
        job.loop = self.single if kind == cnp.NPY_FLOAT else self.double_
        job.numbers = NULL
        job.count = 1
        job.itemsize = job.sizes[0] = cnp.PyArray_ITEMSIZE(a)
        job.data[0] = cnp.PyArray_BYTES(a)
        job.out = cnp.PyArray_BYTES(out)
        job.total = cnp.PyArray_SIZE(a)
        run_all(&job)
        return out

    cpdef bint run_into(self, tuple values, object out):
        """Write the result into an array of its shape and dtype, which may be one of the operands.

        False, with nothing written, if they do not suit the loop.
        """
        cdef VectorLoop loop = self
        if not cnp.PyArray_CheckExact(out):
            return False
        while loop is not None:
            if loop.literals is None or loop.holds_for(values):
                return loop.compute(values, <cnp.ndarray>out) is not None
            loop = loop.other
        return False

    cdef bint holds_for(self, tuple values) except -1:
        """Whether arguments that are no operands have the values that the loop is made for."""
        cdef Py_ssize_t i, place
        for i in range(0, len(self.literals), 2):
            place, literal = self.literals[i], self.literals[i + 1]
            if place >= len(values):
                return False
            value = values[place]
            if value is literal:
                continue
            if literal is None or not isinstance(value, (int, float, str)) or value != literal:
                return False
        return True

    cdef object compute(self, tuple values, cnp.ndarray given):
        cdef Job job
        cdef double numbers[MOST_OPERANDS]
        cdef double constants[MOST_OPERANDS]
        cdef float singles[MOST_OPERANDS]
        cdef PyObject* arrays[MOST_OPERANDS]
        cdef cnp.ndarray first = None, a, out
        cdef const char* roles = self.roles
        cdef Py_ssize_t i, size = len(values), parts
        cdef int count = 0, given_numbers = 0, kind = -1, ndim = 0, d, own, order = cnp.NPY_CORDER
        cdef bint flat = True, has_bools = False
        cdef object value
        if size != len(self.roles):
            return None
        for i in range(size):
            if roles[i] == b"l":
                continue
            value = values[i]
            if roles[i] == b"b":
                # Truth values take part where all operands are contiguous and of one shape.
                if count == MOST_OPERANDS or not (
                    cnp.PyArray_CheckExact(value)
                    and cnp.PyArray_TYPE(<cnp.ndarray>value) == cnp.NPY_BOOL
                    and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)
                ):
                    return None
                has_bools = True
                arrays[count] = <PyObject*>value
                job.sizes[count] = 1
                count += 1
            elif roles[i] == b"a":
                if count == MOST_OPERANDS:
                    return None
                if cnp.PyArray_CheckExact(value):
                    a = <cnp.ndarray>value
                    if first is None:
                        first = a
                        kind = cnp.PyArray_TYPE(a)
                        if kind != cnp.NPY_FLOAT and kind != cnp.NPY_DOUBLE:
                            return None
                    elif cnp.PyArray_TYPE(a) != kind:
                        return None
                    elif flat and not same_dims(first, a):
                        flat = False
                    if not cnp.PyArray_ISBEHAVED_RO(a):
                        return None
                    if flat and not cnp.PyArray_ISCARRAY_RO(a):
                        flat = False
                    own = cnp.PyArray_NDIM(a)
                    if own > ndim:
                        ndim = own
                    arrays[count] = <PyObject*>a
                    job.sizes[count] = cnp.PyArray_ITEMSIZE(a)
                else:
                    if type(value) is not float and type(value) is not int:
                        return None
                    try:
                        constants[count] = <double>value
                    except OverflowError:
                        return None
                    singles[count] = <float>constants[count]
                    arrays[count] = NULL
                    flat = False
                count += 1
            else:
                if type(value) is not float and type(value) is not int:
                    return None
                try:
                    numbers[given_numbers] = <double>value
                except OverflowError:
                    return None
                given_numbers += 1
        if first is None or ndim > MOST_DIMENSIONS:
            return None
        if kind == cnp.NPY_FLOAT:
            # Whether a number that a float cannot hold is refused, operators decide themselves.
            for i in range(count):
                if arrays[i] == NULL and isinf(singles[i]) and not isinf(constants[i]):
                    return None
            for i in range(given_numbers):
                if isinf(<float>numbers[i]) and not isinf(numbers[i]):
                    return None
        if has_bools:
            if not flat:
                return None
            for i in range(count):
                if not same_dims(first, <cnp.ndarray>arrays[i]):
                    return None
        job.loop = self.single if kind == cnp.NPY_FLOAT else self.double_
        job.numbers = numbers
        job.count = count
        job.itemsize = 4 if kind == cnp.NPY_FLOAT else 8
        if not flat:
            # Operands that lie in memory alike, without gaps, are as good as contiguous ones.
            flat = True
            for i in range(count):
                if arrays[i] == NULL or not PyArray_CHKFLAGS(
                    <cnp.ndarray>arrays[i], cnp.NPY_ARRAY_F_CONTIGUOUS
                ) or not same_dims(first, <cnp.ndarray>arrays[i]):
                    flat = False
                    break
            if flat:
                order = cnp.NPY_FORTRANORDER
        if flat:
            if given is None:
                out = <cnp.ndarray>PyArray_NewLikeArray(first, <cnp.NPY_ORDER>order, NULL, 0)
            else:
                out = given
                if (
                    not same_dims(first, out) or cnp.PyArray_TYPE(out) != kind
                    or not cnp.PyArray_ISBEHAVED(out)
                    or not PyArray_CHKFLAGS(
                        out, cnp.NPY_ARRAY_C_CONTIGUOUS if order == cnp.NPY_CORDER
                        else cnp.NPY_ARRAY_F_CONTIGUOUS)
                ):
                    return None
            job.total = cnp.PyArray_SIZE(first)
            for i in range(count):
                job.data[i] = cnp.PyArray_BYTES(<cnp.ndarray>arrays[i])
                if given is not None and overlaps(job.data[i], cnp.PyArray_BYTES(out),
                                                  job.total * job.itemsize):
                    return None
            job.out = cnp.PyArray_BYTES(out)
            run_all(&job)
            return out
        if given is not None or not ndarrays.in_row_order(values):
            return None
        for d in range(ndim):
            job.dims[d] = 1
            for i in range(count):
                if arrays[i] != NULL:
                    a = <cnp.ndarray>arrays[i]
                    own = d - (ndim - cnp.PyArray_NDIM(a))
                    if own >= 0 and cnp.PyArray_DIM(a, own) != 1:
                        job.dims[d] = cnp.PyArray_DIM(a, own)
        for i in range(count):
            if arrays[i] == NULL:
                job.data[i] = (
                    <char*>(singles + i) if kind == cnp.NPY_FLOAT else <char*>(constants + i))
                for d in range(ndim):
                    job.strides[i][d] = 0
            else:
                a = <cnp.ndarray>arrays[i]
                job.data[i] = cnp.PyArray_BYTES(a)
                if not broadcast(&job, a, i, ndim):
                    return None
        out = <cnp.ndarray>cnp.PyArray_EMPTY(ndim, <cnp.npy_intp*>job.dims, kind, 0)
        job.total = cnp.PyArray_SIZE(out)
        if job.total == 0:
            return out
        job.out = cnp.PyArray_BYTES(out)
        merge(&job, ndim)
        if job.length < SHORTEST and job.rows > 1:
            return None
        job.rows_per_part = max(1, PART // job.length)
        job.block = BLOCK
        if job.rows > 1 and job.length < 4 * BLOCK:
            job.block = SHORT_BLOCK
            for i in range(count):
                if job.inner[i] != 0 and job.inner[i] != job.itemsize:
                    job.block = BLOCK
        # A row that is longer than a part is taken in pieces.
        job.piece = PART
        job.pieces = (job.length + job.piece - 1) // job.piece
        parts = (job.rows + job.rows_per_part - 1) // job.rows_per_part * job.pieces
        if job.total < QUICK:
            run_rows(&job, 0)
            return out
        with nogil:
            split(run_rows, &job, parts)
        return out


cdef bint overlaps(char* a, char* b, int64_t size) noexcept:
    """Whether two runs of memory share some of it without being the same."""
    return a != b and a < b + size and b < a + size


cdef int chosen_set():
    """The best instruction set that the processor has and WENGERT_INSTRUCTIONS allows; -1: none."""
    cdef int best = wengert_instruction_set()
    cdef str wish = os.environ.get("WENGERT_INSTRUCTIONS", "")
    if wish == "none":
        return -1
    if wish == "plain":
        return 2
    return 1 if wish == "avx2" and best < 2 else best


cdef int instruction_set = chosen_set()


cdef dict made_loops():
    """All loops by their keys, none on a processor without the instructions."""
    cdef int place = instruction_set
    cdef VectorLoop loop
    cdef dict found = {}
    cdef int i
    if place < 0:
        return found
    for i in reversed(range(wengert_entry_count)):
        loop = VectorLoop.__new__(VectorLoop)
        loop.single = wengert_loops_of[place][0][i]
        loop.double_ = wengert_loops_of[place][1][i]
        loop.roles = wengert_entries[i].roles
        literals = wengert_entries[i].literals.decode()
        loop.literals = None if literals == "()" else sum(literal_eval(literals), ())
        key = wengert_entries[i].key.decode()
        loop.other = found.get(key)
        found[key] = loop
    return found


cdef dict _LOOPS = made_loops()


cdef const void* rows_of(int kind) noexcept:
    """The loops over rows of arrays of a type; NULL on a processor without the instructions."""
    cdef int place = instruction_set
    if place < 0 or kind != cnp.NPY_FLOAT and kind != cnp.NPY_DOUBLE:
        return NULL
    return wengert_rows_of[place][0 if kind == cnp.NPY_FLOAT else 1]


def vector_loop(str key):
    """The loop of an operator, or of a gradient rule by its argument; None if there is none."""
    return _LOOPS.get(key)
