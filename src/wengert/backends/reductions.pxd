cimport numpy as cnp

cdef object reduced(
    int kind, cnp.ndarray a, int first, int last, bint keepdim, double divisor, bint root)
