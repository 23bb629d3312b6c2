/* Elimination in small matrices, one after the other, without a call of LAPACK for each.

   Included once for every type of elements, REAL; NAME(x) is x with the name of the type. Matrices
   are read with any strides, counted in elements, into a buffer of WIDEST rows and columns. */

#include <math.h>

#ifndef WIDEST
#define WIDEST 16
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define WENGERT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WENGERT_CLONES
#endif
#ifdef __GNUC__
#define WENGERT_EACH_LANE _Pragma("GCC ivdep")
#else
#define WENGERT_EACH_LANE
#endif
#endif

enum { NAME(lanes) = 64 / sizeof(REAL) };

static void NAME(load)(REAL *to, const REAL *from, Py_ssize_t rows, Py_ssize_t columns,
                       Py_ssize_t down, Py_ssize_t across) {
    for (Py_ssize_t i = 0; i < rows; i++)
        for (Py_ssize_t j = 0; j < columns; j++) to[i * WIDEST + j] = from[i * down + j * across];
}

static void NAME(exchange)(REAL *one, REAL *other, Py_ssize_t from, Py_ssize_t count) {
    for (Py_ssize_t j = from; j < count; j++) {
        REAL kept = one[j];
        one[j] = other[j];
        other[j] = kept;
    }
}

/* A number divided by a pivot of which the inverse is known, unless that is infinite. */
static inline REAL NAME(divided)(REAL value, REAL pivot, REAL inverse) {
    return NAME(size)(pivot) < NAME(least) ? value / pivot : value * inverse;
}

/* Makes `a` upper triangular, with row exchanges, and does the same to the rows of `b`. Returns the
   first column without a pivot, counted from 1, or 0; `turns` counts the exchanges. */
static int NAME(eliminate)(REAL *a, REAL *b, Py_ssize_t n, Py_ssize_t columns, int *turns) {
    int failed = 0;
    *turns = 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        Py_ssize_t best = k;
        REAL largest = NAME(size)(a[k * WIDEST + k]);
        for (Py_ssize_t i = k + 1; i < n; i++) {
            REAL found = NAME(size)(a[i * WIDEST + k]);
            if (found > largest) {
                largest = found;
                best = i;
            }
        }
        if (best != k) {
            NAME(exchange)(a + k * WIDEST, a + best * WIDEST, k, n);
            NAME(exchange)(b + k * WIDEST, b + best * WIDEST, 0, columns);
            (*turns)++;
        }
        REAL pivot = a[k * WIDEST + k];
        if (pivot == 0) {
            if (!failed) failed = (int)k + 1;
            continue;
        }
        const REAL inverse = 1 / pivot, *row = a + k * WIDEST, *right = b + k * WIDEST;
        for (Py_ssize_t i = k + 1; i < n; i++) {
            REAL *lower = a + i * WIDEST, *below = b + i * WIDEST;
            const REAL factor = NAME(divided)(lower[k], pivot, inverse);
            for (Py_ssize_t j = k + 1; j < n; j++) lower[j] -= factor * row[j];
            for (Py_ssize_t j = 0; j < columns; j++) below[j] -= factor * right[j];
        }
    }
    return failed;
}

/* Solves with an upper triangular `a`; the solution takes the place of `b`. */
static void NAME(substitute)(const REAL *a, REAL *b, Py_ssize_t n, Py_ssize_t columns) {
    for (Py_ssize_t k = n - 1; k >= 0; k--) {
        REAL *row = b + k * WIDEST;
        for (Py_ssize_t i = k + 1; i < n; i++) {
            const REAL factor = a[k * WIDEST + i], *known = b + i * WIDEST;
            for (Py_ssize_t j = 0; j < columns; j++) row[j] -= factor * known[j];
        }
        const REAL pivot = a[k * WIDEST + k], inverse = 1 / pivot;
        for (Py_ssize_t j = 0; j < columns; j++) row[j] = NAME(divided)(row[j], pivot, inverse);
    }
}

/* LU factors with row exchanges in one matrix, as columns that follow each other. `rows` has the row
   that was exchanged in every step, counted from 1, and `failed` the first zero divisor. */
static void NAME(factor)(const REAL *a, const Py_ssize_t *steps, REAL *out, int *rows, int *failed,
                         Py_ssize_t count, Py_ssize_t n) {
    REAL matrix[WIDEST * WIDEST];
    for (Py_ssize_t c = 0; c < count; c++) {
        NAME(load)(matrix, a + c * steps[0], n, n, steps[1], steps[2]);
        failed[c] = 0;
        for (Py_ssize_t k = 0; k < n; k++) {
            Py_ssize_t best = k;
            REAL largest = NAME(size)(matrix[k * WIDEST + k]);
            for (Py_ssize_t i = k + 1; i < n; i++) {
                REAL found = NAME(size)(matrix[i * WIDEST + k]);
                if (found > largest) {
                    largest = found;
                    best = i;
                }
            }
            rows[c * n + k] = (int)best + 1;
            if (best != k) NAME(exchange)(matrix + k * WIDEST, matrix + best * WIDEST, 0, n);
            const REAL pivot = matrix[k * WIDEST + k], *row = matrix + k * WIDEST;
            if (pivot == 0) {
                if (!failed[c]) failed[c] = (int)k + 1;
                continue;
            }
            const REAL inverse = 1 / pivot;
            for (Py_ssize_t i = k + 1; i < n; i++) {
                REAL *lower = matrix + i * WIDEST;
                const REAL factor = NAME(divided)(lower[k], pivot, inverse);
                lower[k] = factor;
                for (Py_ssize_t j = k + 1; j < n; j++) lower[j] -= factor * row[j];
            }
        }
        REAL *to = out + c * n * n;
        for (Py_ssize_t j = 0; j < n; j++)
            for (Py_ssize_t i = 0; i < n; i++) to[j * n + i] = matrix[i * WIDEST + j];
    }
}

/* The solutions, or inverses if there is no right side, each as columns that follow each other. */
static int NAME(solve)(const REAL *a, const Py_ssize_t *a_steps, const REAL *b,
                       const Py_ssize_t *b_steps, REAL *out, Py_ssize_t count, Py_ssize_t n,
                       Py_ssize_t columns) {
    REAL matrix[WIDEST * WIDEST], right[WIDEST * WIDEST];
    int turns;
    for (Py_ssize_t c = 0; c < count; c++) {
        if (b) {
            NAME(load)(matrix, a + c * a_steps[0], n, n, a_steps[1], a_steps[2]);
            NAME(load)(right, b + c * b_steps[0], n, columns, b_steps[1], b_steps[2]);
        } else { /* of the transpose, whose rows are the columns that are wanted */
            NAME(load)(matrix, a + c * a_steps[0], n, n, a_steps[2], a_steps[1]);
            for (Py_ssize_t i = 0; i < n; i++)
                for (Py_ssize_t j = 0; j < n; j++) right[i * WIDEST + j] = i == j;
        }
        if (NAME(eliminate)(matrix, right, n, columns, &turns)) return 0;
        NAME(substitute)(matrix, right, n, columns);
        REAL *to = out + c * n * columns;
        if (b) {
            for (Py_ssize_t j = 0; j < columns; j++)
                for (Py_ssize_t i = 0; i < n; i++) to[j * n + i] = right[i * WIDEST + j];
        } else {
            for (Py_ssize_t i = 0; i < n; i++)
                for (Py_ssize_t j = 0; j < n; j++) to[i * n + j] = right[i * WIDEST + j];
        }
    }
    return 1;
}

/* Determinants, or their signs and the logarithms of their absolute values. */
static void NAME(determinants)(const REAL *a, const Py_ssize_t *steps, REAL *out, REAL *logs,
                               Py_ssize_t count, Py_ssize_t n) {
    REAL matrix[WIDEST * WIDEST];
    int turns;
    for (Py_ssize_t c = 0; c < count; c++) {
        NAME(load)(matrix, a + c * steps[0], n, n, steps[1], steps[2]);
        NAME(eliminate)(matrix, matrix, n, 0, &turns);
        REAL value = turns % 2 ? -1 : 1, log_size = 0;
        for (Py_ssize_t k = 0; k < n; k++) {
            REAL pivot = matrix[k * WIDEST + k];
            if (logs) {
                log_size += NAME(log)(NAME(size)(pivot));
                value *= pivot == 0 ? 0 : pivot < 0 ? -1 : pivot > 0 ? 1 : pivot;
            } else {
                value *= pivot;
            }
        }
        out[c] = value;
        if (logs) logs[c] = log_size;
    }
}

/* Cholesky factors of at most NAME(lanes) matrices, as columns that follow each other; 0 if one has
   none. Each matrix is a lane of vectors, so that one waits for no other's roots and quotients. */
WENGERT_CLONES static int NAME(cholesky_lanes)(const REAL *a, const Py_ssize_t *steps, REAL *out,
                                               Py_ssize_t count, Py_ssize_t n) {
    REAL m[WIDEST * WIDEST][NAME(lanes)], inverse[NAME(lanes)];
    int fine = 1;
    for (Py_ssize_t c = 0; c < NAME(lanes); c++) { /* lanes to spare have the last matrix */
        const REAL *from = a + (c < count ? c : count - 1) * steps[0];
        for (Py_ssize_t j = 0; j < n; j++)
            for (Py_ssize_t i = j; i < n; i++)
                m[j * n + i][c] = from[i * steps[1] + j * steps[2]];
    }
    for (Py_ssize_t j = 0; j < n; j++) {
        REAL(*column)[NAME(lanes)] = m + j * n;
        for (Py_ssize_t k = 0; k < j; k++) {
            REAL(*known)[NAME(lanes)] = m + k * n;
            for (Py_ssize_t i = j; i < n; i++)
                WENGERT_EACH_LANE
                for (int c = 0; c < NAME(lanes); c++) column[i][c] -= known[j][c] * known[i][c];
        }
        for (int c = 0; c < NAME(lanes); c++) fine &= column[j][c] > 0;
        WENGERT_EACH_LANE
        for (int c = 0; c < NAME(lanes); c++) {
            column[j][c] = NAME(root)(column[j][c]);
            inverse[c] = 1 / column[j][c];
        }
        for (Py_ssize_t i = j + 1; i < n; i++)
            WENGERT_EACH_LANE
            for (int c = 0; c < NAME(lanes); c++) column[i][c] *= inverse[c];
    }
    for (Py_ssize_t c = 0; c < count; c++) {
        REAL *to = out + c * n * n;
        for (Py_ssize_t j = 0; j < n; j++) {
            for (Py_ssize_t i = 0; i < j; i++) to[j * n + i] = 0;
            for (Py_ssize_t i = j; i < n; i++) to[j * n + i] = m[j * n + i][c];
        }
    }
    return fine;
}

static int NAME(cholesky)(const REAL *a, const Py_ssize_t *steps, REAL *out, Py_ssize_t count,
                          Py_ssize_t n) {
    for (Py_ssize_t c = 0; c < count; c += NAME(lanes)) {
        const Py_ssize_t left = count - c < NAME(lanes) ? count - c : NAME(lanes);
        if (!NAME(cholesky_lanes)(a + c * steps[0], steps, out + c * n * n, left, n)) return 0;
    }
    return 1;
}
