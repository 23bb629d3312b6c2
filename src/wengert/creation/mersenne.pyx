# cython: boundscheck=False, wraparound=False
"""The Mersenne Twister behind generators, and what becomes of its words: see `mersenne.py`."""
cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cnp.import_array()

cdef extern from "mersenne.h":
    ctypedef struct Twister "wengert_twister":
        uint32_t key[624]
        int next
        int fresh
        int has_normal
        double normal
    int WORDS "WENGERT_WORDS"
    void wengert_seed(Twister* self, uint32_t seed) noexcept nogil
    void wengert_temper(Twister* self) noexcept nogil
    double wengert_unit(Twister* self) noexcept nogil
    void wengert_words(Twister* self, uint32_t* out, Py_ssize_t n) noexcept nogil
    void wengert_unit_float(Twister* self, float* out, Py_ssize_t n) noexcept nogil
    void wengert_unit_double(Twister* self, double* out, Py_ssize_t n) noexcept nogil
    void wengert_scale_float(float* out, Py_ssize_t n, float low, float high) noexcept nogil
    void wengert_scale_double(double* out, Py_ssize_t n, double low, double high) noexcept nogil
    void wengert_flags(Twister* self, uint8_t* out, Py_ssize_t n, double p) noexcept nogil
    void wengert_remainders(
        Twister* self, int64_t* out, Py_ssize_t n, uint64_t range, int64_t base,
        bint wide) noexcept nogil
    void wengert_permutation(Twister* self, int64_t* out, Py_ssize_t n) noexcept nogil
    void wengert_exponential(
        Twister* self, double* out, Py_ssize_t n, double factor) noexcept nogil
    void wengert_normals(
        Twister* self, double* out, Py_ssize_t n, double mean, double std) noexcept nogil
    void wengert_normal_float(
        Twister* self, float* out, Py_ssize_t n, float mean, float std) noexcept nogil
    void wengert_normal_double(
        Twister* self, double* out, Py_ssize_t n, double mean, double std) noexcept nogil


cdef class Mersenne:
    cdef Twister twister

    def __cinit__(self, uint32_t seed):
        wengert_seed(&self.twister, seed)

    def state(self):
        key = (<char*>self.twister.key)[:4 * WORDS]
        normal = self.twister.normal if self.twister.has_normal else None
        return key, 0 if self.twister.fresh else self.twister.next, normal

    def restore(self, bytes key, int next, normal):
        cdef const char* words = key
        if len(key) != 4 * WORDS or not 0 <= next <= WORDS:
            raise ValueError("not a state of the Mersenne Twister")
        memcpy(self.twister.key, words, 4 * WORDS)
        wengert_temper(&self.twister)
        self.twister.fresh = next == 0
        self.twister.next = next or WORDS
        self.twister.has_normal = normal is not None
        self.twister.normal = normal or 0.0

    def words(self, Py_ssize_t count):
        out = cnp.PyArray_EMPTY(1, [count], cnp.NPY_UINT32, 0)
        wengert_words(&self.twister, <uint32_t*>cnp.PyArray_DATA(out), count)
        return out

    def unit(self):
        return wengert_unit(&self.twister)

    def uniform(self, cnp.ndarray out, double low, double high):
        cdef Py_ssize_t n = cnp.PyArray_SIZE(out)
        cdef void* data = cnp.PyArray_DATA(out)
        if cnp.PyArray_TYPE(out) == cnp.NPY_FLOAT:
            wengert_unit_float(&self.twister, <float*>data, n)
            if low != 0 or high != 1:
                wengert_scale_float(<float*>data, n, <float>low, <float>high)
        else:
            wengert_unit_double(&self.twister, <double*>data, n)
            if low != 0 or high != 1:
                wengert_scale_double(<double*>data, n, low, high)

    def normal(self, cnp.ndarray out, double mean, double std):
        cdef Py_ssize_t n = cnp.PyArray_SIZE(out)
        cdef void* data = cnp.PyArray_DATA(out)
        if cnp.PyArray_TYPE(out) == cnp.NPY_FLOAT:
            wengert_normal_float(&self.twister, <float*>data, n, <float>mean, <float>std)
        else:
            wengert_normal_double(&self.twister, <double*>data, n, mean, std)

    def normals_in_pairs(self, Py_ssize_t count, double mean, double std):
        out = cnp.PyArray_EMPTY(1, [count], cnp.NPY_DOUBLE, 0)
        wengert_normals(&self.twister, <double*>cnp.PyArray_DATA(out), count, mean, std)
        return out

    def flags(self, Py_ssize_t count, double p):
        out = cnp.PyArray_EMPTY(1, [count], cnp.NPY_BOOL, 0)
        wengert_flags(&self.twister, <uint8_t*>cnp.PyArray_DATA(out), count, p)
        return out

    def integers(self, cnp.ndarray out, uint64_t span, int64_t base, bint wide):
        wengert_remainders(
            &self.twister, <int64_t*>cnp.PyArray_DATA(out), cnp.PyArray_SIZE(out), span, base, wide)

    def permutation(self, Py_ssize_t count):
        out = cnp.PyArray_EMPTY(1, [count], cnp.NPY_INT64, 0)
        wengert_permutation(&self.twister, <int64_t*>cnp.PyArray_DATA(out), count)
        return out

    def exponential(self, Py_ssize_t count, double factor):
        out = cnp.PyArray_EMPTY(1, [count], cnp.NPY_DOUBLE, 0)
        wengert_exponential(&self.twister, <double*>cnp.PyArray_DATA(out), count, factor)
        return out
