"""Work on contiguous arrays seen as blocks of rows, by strips of columns, see strips.h."""
cimport numpy as cnp
from libc.stdint cimport int64_t

cdef extern from "vector_loops.h":
    ctypedef struct wengert_rows:
        void (*softmax)(const char*, char*, int64_t, int64_t) noexcept nogil
        void (*log_softmax)(const char*, char*, int64_t, int64_t) noexcept nogil
        void (*logsumexp)(const char*, char*, int64_t, int64_t) noexcept nogil
        void (*cumsum)(const char*, char*, int64_t, int64_t) noexcept nogil
        void (*softmax_gradient)(
            const char*, const char*, char*, int64_t, int64_t) noexcept nogil
        void (*log_softmax_gradient)(
            const char*, const char*, char*, int64_t, int64_t) noexcept nogil
        void (*spread)(
            const char*, const char*, double*, int64_t, int64_t, int64_t) noexcept nogil
        void (*affine)(
            const char*, const char*, const char*, const char*, char*, int64_t, int64_t,
            int64_t) noexcept nogil
        void (*products)(
            const char*, const char*, const char*, double*, double*, int64_t, int64_t,
            int64_t) noexcept nogil
        void (*centred)(
            const char*, const char*, const char*, const char*, const char*, const char*, char*,
            int64_t, int64_t, int64_t) noexcept nogil
        void (*strip_softmax)(
            int, const char*, char*, int64_t, int64_t, int64_t) noexcept nogil
        void (*strip_logsumexp)(const char*, char*, int64_t, int64_t, int64_t) noexcept nogil
        void (*strip_softmax_gradient)(
            int, const char*, const char*, char*, int64_t, int64_t, int64_t) noexcept nogil
        void (*shares)(
            const char*, const char*, const char*, char*, int64_t, int64_t,
            int64_t) noexcept nogil
        void (*strip_cumsum)(
            int, const char*, char*, int64_t, int64_t, int64_t) noexcept nogil
        void (*arg)(
            int, const char*, char*, int64_t*, int64_t, int64_t, int64_t) noexcept nogil
        void (*ties)(
            const char*, const char*, const char*, char*, int64_t, int64_t,
            int64_t) noexcept nogil
        void (*ratio)(
            int, const char*, const char*, const char*, char*, int64_t, int64_t,
            int64_t) noexcept nogil
        bint (*multiply)(
            const char*, const char*, char*, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
            int64_t, bint) noexcept nogil
        void (*panels)(
            const char*, const char*, const char*, char*, int64_t, int64_t, int64_t, int64_t, int64_t,
            int64_t, int64_t, int64_t, int64_t, double, double) noexcept nogil

# What a strip of some rows is given: offsets in bytes of operands of the whole shape and of those
# of the reduced one, the number of the first result of a chunk, how many rows and columns.
ctypedef void (*strip_work)(
    Strips* job, int64_t full, int64_t single, int64_t partial, int64_t rows, int64_t width
) noexcept nogil

cdef struct Strips:
    const wengert_rows* table
    strip_work work
    int kind, itemsize
    int64_t outer, count, columns, strips, chunk, chunks, units, per_part
    # Operands; which are whole and which reduced is the work's to know.
    char* a
    char* b
    char* c
    char* d
    char* e
    char* out
    char* more
    double* partial
    double* other

cdef bint start(Strips* job, cnp.ndarray a, int first, int last) noexcept
cdef void run(Strips* job, strip_work work, bint by_chunks) noexcept
cdef cnp.ndarray reduced_like(cnp.ndarray a, int first, int last, bint keepdim, int kind)
cdef bint is_reduced(object value, cnp.ndarray a, int first, int last) noexcept
