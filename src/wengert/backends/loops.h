/* The loops of loops.pyx over contiguous floats and doubles. The numbers of the operations are
   those in loop_codes.py. */
#include <Python.h>
#include <math.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define WENGERT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WENGERT_CLONES
#endif

/* The arithmetic loops, once for float and once for double. */
#define WENGERT_LOOP(expression) for (Py_ssize_t i = 0; i < n; i++) out[i] = expression
#define WENGERT_ARITHMETIC(name, real)                                                        \
WENGERT_CLONES static void name(                                                              \
        int code, const real* a, const real* b, real* out, Py_ssize_t n) {                    \
    switch (code) {                                                                           \
    case 0: WENGERT_LOOP(a[i] + b[i]); break;                                                 \
    case 1: WENGERT_LOOP(a[i] - b[i]); break;                                                 \
    case 2: WENGERT_LOOP(a[i] * b[i]); break;                                                 \
    case 3: WENGERT_LOOP(a[i] / b[i]); break;                                                 \
    default: WENGERT_LOOP(b[i] - a[i]);                                                       \
    }                                                                                         \
}                                                                                             \
WENGERT_CLONES static void name##_right(                                                      \
        int code, const real* a, real s, real* out, Py_ssize_t n) {                           \
    switch (code) {                                                                           \
    case 0: WENGERT_LOOP(a[i] + s); break;                                                    \
    case 1: WENGERT_LOOP(a[i] - s); break;                                                    \
    case 2: WENGERT_LOOP(a[i] * s); break;                                                    \
    case 3: WENGERT_LOOP(a[i] / s); break;                                                    \
    default: WENGERT_LOOP(s - a[i]);                                                          \
    }                                                                                         \
}                                                                                             \
WENGERT_CLONES static void name##_left(                                                       \
        int code, real s, const real* b, real* out, Py_ssize_t n) {                           \
    switch (code) {                                                                           \
    case 0: WENGERT_LOOP(s + b[i]); break;                                                    \
    case 1: WENGERT_LOOP(s - b[i]); break;                                                    \
    case 2: WENGERT_LOOP(s * b[i]); break;                                                    \
    case 3: WENGERT_LOOP(s / b[i]); break;                                                    \
    default: WENGERT_LOOP(b[i] - s);                                                          \
    }                                                                                         \
}                                                                                             \
WENGERT_CLONES static void name##_differential(                                               \
        int code, const real* t, const real* y, real* out, Py_ssize_t n) {                    \
    switch (code) {                                                                           \
    case 7: WENGERT_LOOP(t[i] * (1 - y[i] * y[i])); break;                                    \
    case 8: WENGERT_LOOP(t[i] * ((1 - y[i]) * y[i])); break;                                  \
    default: WENGERT_LOOP(y[i] <= 0 ? 0 : t[i]);                                              \
    }                                                                                         \
}
WENGERT_ARITHMETIC(wengert_float, float)
WENGERT_ARITHMETIC(wengert_double, double)

/* Loops over one operand; those that have vector loops come here on other processors alone. */
#define WENGERT_UNARY(name, real, ABS_, EXP_, LOG_, SQRT_, SIN_, COS_, TANH_)                 \
static void name(int code, const real* a, real* out, Py_ssize_t n) {                          \
    switch (code) {                                                                           \
    case 0: WENGERT_LOOP(-a[i]); break;                                                       \
    case 1: WENGERT_LOOP(ABS_(a[i])); break;                                                  \
    case 2: WENGERT_LOOP(EXP_(a[i])); break;                                                  \
    case 3: WENGERT_LOOP(LOG_(a[i])); break;                                                  \
    case 4: WENGERT_LOOP(SQRT_(a[i])); break;                                                 \
    case 5: WENGERT_LOOP(SIN_(a[i])); break;                                                  \
    case 6: WENGERT_LOOP(COS_(a[i])); break;                                                  \
    case 7: WENGERT_LOOP(TANH_(a[i])); break;                                                 \
    case 8: WENGERT_LOOP(1 / (1 + EXP_(-a[i]))); break;                                       \
    case 9: WENGERT_LOOP(a[i] < 0 ? 0 : a[i]); break;                                         \
    case 10: WENGERT_LOOP(a[i] * a[i]); break;                                                \
    default: WENGERT_LOOP(1 / a[i]);                                                          \
    }                                                                                         \
}
WENGERT_UNARY(wengert_float_unary, float, fabsf, expf, logf, sqrtf, sinf, cosf, tanhf)
WENGERT_UNARY(wengert_double_unary, double, fabs, exp, log, sqrt, sin, cos, tanh)

/* Sums, scaled sums and what is left of a sigmoid. */
#define WENGERT_OTHERS(name, real)                                                            \
static void name##_sum_rows(const real* a, real* out, Py_ssize_t rows, Py_ssize_t n) {        \
    for (Py_ssize_t row = 0; row < rows; row++, a += n) WENGERT_LOOP(out[i] + a[i]);          \
}                                                                                             \
static void name##_scaled_add(real* out, const real* b, real factor, Py_ssize_t n) {          \
    WENGERT_LOOP(out[i] + factor * b[i]);                                                     \
}                                                                                             \
static void name##_logistic_tail(real* out, Py_ssize_t n) {                                   \
    WENGERT_LOOP(1 / (1 + out[i]));                                                           \
}                                                                                             \
static void name##_sum(const real* a, real* out, Py_ssize_t n) {                              \
    double total = 0;                                                                         \
    for (Py_ssize_t i = 0; i < n; i++) total += a[i];                                         \
    *out = (real)total;                                                                       \
}
WENGERT_OTHERS(wengert_float, float)
WENGERT_OTHERS(wengert_double, double)
