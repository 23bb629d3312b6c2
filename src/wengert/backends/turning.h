/* Matrices turned around: elements of a column lie side by side, those of a row are to. Rows in reverse
   order. */
#include "copying.h"

#if defined(__GNUC__) && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define WENGERT_SHUFFLE __builtin_shufflevector
#endif
#endif

/* The elements of rows from `top` to `bottom` and columns from `left` to `right`: where `data` has
   (i, j) at i + j * step elements, `out` gets it at i * columns + j. */
#define WENGERT_TURN(name, word, width, ...)                                                  \
static void name(const char* data, Py_ssize_t step, char* out, Py_ssize_t columns,            \
                 Py_ssize_t top, Py_ssize_t bottom, Py_ssize_t left, Py_ssize_t right) {      \
    Py_ssize_t j = left;                                                                      \
    for (; j + width <= right; j += width) {                                                  \
        Py_ssize_t i = top;                                                                   \
        for (int k = 0; k < width; k++)                                                       \
            __builtin_prefetch((const word*)data + (j + k + (right - left)) * step + top);    \
        __VA_ARGS__                                                                           \
        for (; i < bottom; i++)                                                               \
            for (int k = 0; k < width; k++)                                                   \
                ((word*)out)[i * columns + j + k] = ((const word*)data)[i + (j + k) * step];  \
    }                                                                                         \
    for (; j < right; j++)                                                                    \
        for (Py_ssize_t i = top; i < bottom; i++)                                             \
            ((word*)out)[i * columns + j] = ((const word*)data)[i + j * step];                \
}

#ifdef WENGERT_SHUFFLE
typedef uint32_t wengert_four __attribute__((vector_size(16)));
typedef uint64_t wengert_two __attribute__((vector_size(16)));
#define WENGERT_PUT(row, value) memcpy((char*)to + (row) * columns * sizeof(*to), &(value), 16)

WENGERT_TURN(wengert_turn_4, uint32_t, 4,
    for (; i + 4 <= bottom; i += 4) {
        const uint32_t* from = (const uint32_t*)data + i + j * step;
        uint32_t* to = (uint32_t*)out + i * columns + j;
        wengert_four a, b, c, d;
        memcpy(&a, from, 16);
        memcpy(&b, from + step, 16);
        memcpy(&c, from + 2 * step, 16);
        memcpy(&d, from + 3 * step, 16);
        wengert_four ab = WENGERT_SHUFFLE(a, b, 0, 4, 1, 5);
        wengert_four cd = WENGERT_SHUFFLE(c, d, 0, 4, 1, 5);
        wengert_four later_ab = WENGERT_SHUFFLE(a, b, 2, 6, 3, 7);
        wengert_four later_cd = WENGERT_SHUFFLE(c, d, 2, 6, 3, 7);
        a = WENGERT_SHUFFLE(ab, cd, 0, 1, 4, 5);
        b = WENGERT_SHUFFLE(ab, cd, 2, 3, 6, 7);
        c = WENGERT_SHUFFLE(later_ab, later_cd, 0, 1, 4, 5);
        d = WENGERT_SHUFFLE(later_ab, later_cd, 2, 3, 6, 7);
        WENGERT_PUT(0, a);
        WENGERT_PUT(1, b);
        WENGERT_PUT(2, c);
        WENGERT_PUT(3, d);
    })
WENGERT_TURN(wengert_turn_8, uint64_t, 2,
    for (; i + 2 <= bottom; i += 2) {
        const uint64_t* from = (const uint64_t*)data + i + j * step;
        uint64_t* to = (uint64_t*)out + i * columns + j;
        wengert_two a, b;
        memcpy(&a, from, 16);
        memcpy(&b, from + step, 16);
        wengert_two first = WENGERT_SHUFFLE(a, b, 0, 2);
        wengert_two second = WENGERT_SHUFFLE(a, b, 1, 3);
        WENGERT_PUT(0, first);
        WENGERT_PUT(1, second);
    })
#else
#ifndef __GNUC__
#define __builtin_prefetch(place) ((void)0)
#endif
WENGERT_TURN(wengert_turn_4, uint32_t, 4, )
WENGERT_TURN(wengert_turn_8, uint64_t, 2, )
#endif

/* n elements in reverse order. */
#define WENGERT_REVERSE(name, word)                                                           \
WENGERT_COPIES static void name(char* to, const char* from, Py_ssize_t n) {                   \
    const word* end = (const word*)from + n - 1;                                              \
    for (Py_ssize_t i = 0; i < n; i++) ((word*)to)[i] = end[-i];                              \
}
WENGERT_REVERSE(wengert_reverse_1, uint8_t)
WENGERT_REVERSE(wengert_reverse_2, uint16_t)
WENGERT_REVERSE(wengert_reverse_4, uint32_t)
WENGERT_REVERSE(wengert_reverse_8, uint64_t)
