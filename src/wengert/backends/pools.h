/* The largest element of every window of a picture, and its place, by rows of windows: all windows
   of a row look at one of their elements at a time.

   Included once for every type of elements, REAL, with WHOLE for integers as wide; NAME(x) is x with
   the name of the type. */

#include <math.h>

#ifndef WENGERT_POOLS
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define WENGERT_POOLS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WENGERT_POOLS
#endif
#ifdef __GNUC__
#define WENGERT_INSIDE inline __attribute__((always_inline))
#else
#define WENGERT_INSIDE inline
#endif

typedef struct {
    Py_ssize_t height, width, rows, columns, tall, wide, down, across, top, left, apart_down,
        apart_across;
} wengert_pool;
#endif

/* One element of each of `n` windows, `step` apart, the first at `place`; of NaN the last counts. */
static WENGERT_INSIDE void NAME(look)(const REAL *restrict x, Py_ssize_t step, Py_ssize_t n,
                                      WHOLE place, REAL *restrict best, WHOLE *restrict at) {
    for (Py_ssize_t c = 0; c < n; c++) {
        const REAL value = x[c * step];
        const int better = (value > best[c]) | (value != value);
        best[c] = better ? value : best[c];
        at[c] = better ? place + (WHOLE)(c * step) : at[c];
    }
}

/* All windows of one picture; `at` has room for a row of places. */
WENGERT_POOLS static void NAME(pool)(const REAL *x, const wengert_pool *pool, REAL *out,
                                     int64_t *places, WHOLE *at) {
    const Py_ssize_t width = pool->width, columns = pool->columns, across = pool->across;
    const WHOLE last = (WHOLE)(pool->height * width - 1);
    for (Py_ssize_t r = 0; r < pool->rows; r++, out += columns, places += columns) {
        Py_ssize_t y = r * pool->down - pool->top, inside = y;
        while (inside < 0) inside += pool->apart_down;
        for (Py_ssize_t c = 0; c < columns; c++) {
            Py_ssize_t start = c * across - pool->left;
            while (start < 0) start += pool->apart_across;
            const WHOLE first = (WHOLE)(inside * width + start);
            at[c] = first < last ? first : last;
            out[c] = -INFINITY;
        }
        for (Py_ssize_t i = 0; i < pool->tall; i++, y += pool->apart_down) {
            if (y < 0 || y >= pool->height) continue;
            for (Py_ssize_t j = 0; j < pool->wide; j++) {
                const Py_ssize_t shift = j * pool->apart_across - pool->left;
                if (shift >= width) continue;
                const Py_ssize_t begin = shift < 0 ? (across - 1 - shift) / across : 0;
                Py_ssize_t n = (width - 1 - shift) / across + 1;
                n = (n < columns ? n : columns) - begin;
                const Py_ssize_t place = y * width + shift + begin * across;
                if (across == 1)
                    NAME(look)(x + place, 1, n, (WHOLE)place, out + begin, at + begin);
                else if (across == 2)
                    NAME(look)(x + place, 2, n, (WHOLE)place, out + begin, at + begin);
                else
                    NAME(look)(x + place, across, n, (WHOLE)place, out + begin, at + begin);
            }
        }
        for (Py_ssize_t c = 0; c < columns; c++) places[c] = at[c];
    }
}
