# cython: boundscheck=False, wraparound=False
"""Programs of elementwise operations on rows of arrays, in one call for all of them; see programs.h.

`programs.py` beside this file is the interface without C.
"""
cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from ..core.array_checks cimport same_dims
from ..core.pool cimport split
from .vector_loops cimport rows_of

cnp.import_array()

cdef extern from "vector_loops.h":
    ctypedef struct wengert_rows:
        void (*run_program)(
            const int32_t*, int, const double*, int, char**, int, const int32_t*, int,
            int64_t) noexcept nogil

ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, ROOT, SIZE, MAXIMUM = range(8)
MOST_REGISTERS = 48

cdef enum:
    REGISTERS = 48
    MOST_STEPS = 64
    MOST_OPERANDS = 12
    PART = 16384   # elements that one thread takes at a time
    QUICK = 4096   # elements below which the interpreter's lock is kept


cdef struct Program:
    const wengert_rows* table
    int32_t code[4 * MOST_STEPS]
    int32_t outputs[2 * MOST_OPERANDS]
    double numbers[REGISTERS]
    int length, count, operands, results, itemsize
    char** data      # of all rows, one behind the other
    int64_t* sizes
    int64_t* firsts  # of the parts of each row, among those of all
    int64_t rows


cdef void run_part(void* data, int64_t part) noexcept nogil:
    cdef Program* job = <Program*>data
    cdef char* operands[MOST_OPERANDS]
    cdef int64_t row = 0, begin
    cdef int i
    while row + 1 < job.rows and job.firsts[row + 1] <= part:
        row += 1
    begin = (part - job.firsts[row]) * PART
    for i in range(job.operands):
        operands[i] = job.data[row * job.operands + i] + begin * job.itemsize
    job.table.run_program(
        job.code, job.length, job.numbers, job.count, operands, job.operands, job.outputs,
        job.results, min(<int64_t>PART, job.sizes[row] - begin))


def available():
    """Whether programs can be run at all."""
    return rows_of(cnp.NPY_FLOAT) != NULL


cdef bint suits(Program* job, tuple row, int kind):
    """Whether the arrays of a row are contiguous, of one type and of one shape; if so, note them."""
    cdef cnp.ndarray first, a
    cdef int j
    if len(row) != job.operands:
        return False
    for j in range(job.operands):
        if not cnp.PyArray_CheckExact(row[j]):
            return False
        first, a = <cnp.ndarray>row[0], <cnp.ndarray>row[j]
        if (
            cnp.PyArray_TYPE(a) != kind or not cnp.PyArray_ISCARRAY(a) or not same_dims(a, first)
        ):
            return False
        job.data[job.rows * job.operands + j] = cnp.PyArray_BYTES(a)
    job.sizes[job.rows] = cnp.PyArray_SIZE(first)
    job.firsts[job.rows + 1] = job.firsts[job.rows] + (job.sizes[job.rows] + PART - 1) // PART
    job.rows += 1
    return True


cdef list run_all(Program* job, list rows, int kind):
    cdef list left = []
    cdef int64_t i, total = 0
    job.rows = job.firsts[0] = 0
    for i in range(len(rows)):
        if not suits(job, <tuple>rows[i], kind):
            left.append(i)
    for i in range(job.rows):
        total += job.sizes[i]
    if total < QUICK:
        for i in range(job.firsts[job.rows]):
            run_part(job, i)
    else:
        with nogil:
            split(run_part, job, job.firsts[job.rows])
    return left


def run_program(list code, list numbers, list rows, list outputs):
    """Run a program on each row of arrays; the places of those that do not suit, and stay as they are.

    `code` has four numbers for an instruction, `outputs` a register and the operand to write it to.
    """
    cdef Program job
    cdef int64_t i
    cdef int kind
    cdef list all_rows = list(range(len(rows)))
    if not rows or not cnp.PyArray_CheckExact((<tuple>rows[0])[0]):
        return all_rows
    kind = cnp.PyArray_TYPE(<cnp.ndarray>(<tuple>rows[0])[0])
    job.table = <const wengert_rows*>rows_of(kind)
    job.length, job.count = <int>(len(code) // 4), <int>len(numbers)
    job.operands, job.results = <int>len(<tuple>rows[0]), <int>(len(outputs) // 2)
    if job.table == NULL or job.length > MOST_STEPS or job.operands > MOST_OPERANDS or (
        job.results > MOST_OPERANDS or job.operands + job.count + job.length > REGISTERS
    ):
        return all_rows
    for i in range(len(code)):
        job.code[i] = code[i]
    for i in range(len(outputs)):
        job.outputs[i] = outputs[i]
    for i in range(job.count):
        job.numbers[i] = numbers[i]
    job.itemsize = 4 if kind == cnp.NPY_FLOAT else 8
    job.data = <char**>malloc(len(rows) * job.operands * sizeof(char*))
    job.sizes = <int64_t*>malloc(len(rows) * sizeof(int64_t))
    job.firsts = <int64_t*>malloc((len(rows) + 1) * sizeof(int64_t))
    try:
        if job.data == NULL or job.sizes == NULL or job.firsts == NULL:
            return all_rows
        return run_all(&job, rows, kind)
    finally:
        free(job.data)
        free(job.sizes)
        free(job.firsts)
