/* Copies of memory. */
#ifndef WENGERT_COPYING
#define WENGERT_COPYING
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* Several instruction sets in one function: older compilers and other C libraries cannot. */
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) \
    && defined(__GLIBC__)
#define WENGERT_COPIES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WENGERT_COPIES
#endif

#ifdef __GNUC__
typedef int64_t wengert_piece __attribute__((vector_size(32), aligned(1), may_alias));
#define WENGERT_PIECE ((Py_ssize_t)sizeof(wengert_piece))
#define WENGERT_GET(place) (*(const wengert_piece*)(place))
#define WENGERT_SET_AT(place, value) (*(wengert_piece*)(place) = (value))

/* At least one piece, written at addresses that are multiples of its size but for both ends. */
WENGERT_COPIES static void wengert_copy_pieces(char* to, const char* from, Py_ssize_t size) {
    wengert_piece last = WENGERT_GET(from + size - WENGERT_PIECE);
    Py_ssize_t i = WENGERT_PIECE - (Py_ssize_t)((uintptr_t)to & (WENGERT_PIECE - 1));
    WENGERT_SET_AT(to, WENGERT_GET(from));
    for (; i + 4 * WENGERT_PIECE <= size; i += 4 * WENGERT_PIECE) {
        wengert_piece a = WENGERT_GET(from + i), b = WENGERT_GET(from + i + WENGERT_PIECE);
        wengert_piece c = WENGERT_GET(from + i + 2 * WENGERT_PIECE);
        wengert_piece d = WENGERT_GET(from + i + 3 * WENGERT_PIECE);
        WENGERT_SET_AT(to + i, a);
        WENGERT_SET_AT(to + i + WENGERT_PIECE, b);
        WENGERT_SET_AT(to + i + 2 * WENGERT_PIECE, c);
        WENGERT_SET_AT(to + i + 3 * WENGERT_PIECE, d);
    }
    for (; i + WENGERT_PIECE <= size; i += WENGERT_PIECE)
        WENGERT_SET_AT(to + i, WENGERT_GET(from + i));
    WENGERT_SET_AT(to + size - WENGERT_PIECE, last);
}

/* What memcpy does, which takes twice as long for rows of some hundred bytes. That of glibc copies rows
   of some kilobytes by the processor's instruction for strings, which on AMD's takes ten times as long
   where the result begins less than 16 bytes further in its page than the source: rolled by one
   element, or joined behind a short array. */
static inline void wengert_copy(char* to, const char* from, Py_ssize_t size) {
    if (size < 64) memcpy(to, from, (size_t)size);
    else wengert_copy_pieces(to, from, size);
}
#else
static inline void wengert_copy(char* to, const char* from, Py_ssize_t size) {
    memcpy(to, from, (size_t)size);
}
#endif
#endif
