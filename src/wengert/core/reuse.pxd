cdef object new_like(object like)
