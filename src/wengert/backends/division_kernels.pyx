# cython: boundscheck=False, wraparound=False
"""Kernels of the remainders of divisions, of floats by floats of the same shape or by one number."""
cimport numpy as cnp
from libc.math cimport fmod
from libc.stdint cimport int64_t

from ..core.array_checks cimport empty_like, is_number, same_dims
from ..core.pool cimport split
from .kernels cimport is_plain, known

cnp.import_array()

cdef extern from "<math.h>" nogil:
    float fmodf(float x, float y)

cdef enum:
    PART = 8192        # elements that a thread takes at a time

ctypedef fused real:
    float
    double


cdef struct Division:
    const void* x
    const void* y
    void* out
    int64_t size
    bint is_double, has_divisors, floors
    double divisor


cdef void divide(
    const real* x, const real* y, real divisor, real* out, int64_t n, bint floors
) noexcept nogil:
    """Remainders with the sign of the dividend, or, if it `floors`, with that of the divisor.

    A zero has the sign of the dividend.
    """
    cdef int64_t i
    cdef real rest
    for i in range(n):
        if y != NULL:
            divisor = y[i]
        if real is float:
            rest = fmodf(x[i], divisor)
        else:
            rest = fmod(x[i], divisor)
        if floors and rest != 0 and (divisor < 0) != (rest < 0):
            rest = rest + divisor
        out[i] = rest


cdef void divide_part(void* data, int64_t part) noexcept nogil:
    cdef Division* job = <Division*>data
    cdef int64_t begin = part * PART, n = min(<int64_t>PART, job.size - begin)
    if job.is_double:
        divide[double](
            <const double*>job.x + begin, <const double*>job.y + begin if job.has_divisors else NULL,
            job.divisor, <double*>job.out + begin, n, job.floors)
    else:
        divide[float](
            <const float*>job.x + begin, <const float*>job.y + begin if job.has_divisors else NULL,
            <float>job.divisor, <float*>job.out + begin, n, job.floors)


cdef object rest_of(object x, object y, bint floors):
    cdef Division job
    cdef cnp.ndarray a, out
    if not is_plain(x):
        return None
    a = <cnp.ndarray>x
    job.has_divisors = not is_number(y)
    if job.has_divisors:
        if (
            not is_plain(y) or cnp.PyArray_TYPE(<cnp.ndarray>y) != cnp.PyArray_TYPE(a)
            or not same_dims(a, <cnp.ndarray>y)
        ):
            return None
        job.y = cnp.PyArray_DATA(<cnp.ndarray>y)
    else:
        try:
            job.divisor = <double>y
        except OverflowError:
            return None
    out = empty_like(a)
    job.x, job.out, job.size = cnp.PyArray_DATA(a), cnp.PyArray_DATA(out), cnp.PyArray_SIZE(a)
    job.is_double, job.floors = cnp.PyArray_TYPE(a) == cnp.NPY_DOUBLE, floors
    if job.size <= PART:
        divide_part(&job, 0)
    else:
        with nogil:
            split(divide_part, &job, (job.size + PART - 1) // PART)
    return out


cdef object remainder(tuple v):
    """(self, other)"""
    return rest_of(v[0], v[1], True)


cdef object fmod_(tuple v):
    """(self, other)"""
    return rest_of(v[0], v[1], False)


known("remainder", remainder)
known("fmod", fmod_)
