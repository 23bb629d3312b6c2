from libc.stdint cimport int64_t

ctypedef void (*work_t)(void* data, int64_t part) noexcept nogil

cdef void split(work_t work, void* data, int64_t parts) noexcept nogil
cdef int threads_allowed() noexcept nogil
