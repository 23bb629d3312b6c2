/* The loops of loops.pyx over contiguous floats and doubles. The numbers of the operations are
   those in loop_codes.py. */
#include <Python.h>
#include <math.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define WENGERT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WENGERT_CLONES
#endif

/* exp in single precision without branches, so that compilers vectorise loops over it:
   2^n * p(r) with x = n * log(2) + r; about one unit in the last place off. */
static inline float wengert_exp(float x) {
    union { int i; float f; } scale;
    x = x > 88.0f ? 88.0f : x;
    x = x < -87.0f ? -87.0f : x;
    float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    scale.i = ((int)n + 127) << 23;
    return p * scale.f;
}

WENGERT_CLONES
static void wengert_sigmoid(const float* x, float* y, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        /* wengert_exp ends at 88; beyond it results are subnormal, and then zero. */
        float d = x[i] < -88.0f ? x[i] + 88.0f : 0.0f;
        float rest = (((d / 24.0f + 1.0f / 6.0f) * d + 0.5f) * d + 1.0f) * d + 1.0f;
        float value = rest / (1.0f + wengert_exp(-x[i]));
        y[i] = x[i] < -88.7228394f ? 0.0f : value;
    }
}

/* An odd polynomial near zero, where the quotient would cancel. */
WENGERT_CLONES
static void wengert_tanh(const float* x, float* y, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        float a = x[i], z = a * a, size = a < 0.0f ? -a : a;
        float far = 1.0f - 2.0f / (wengert_exp(size + size) + 1.0f);
        float p = -5.70498872745e-3f;
        p = p * z + 2.06390887954e-2f;
        p = p * z - 5.37397155531e-2f;
        p = p * z + 1.33314422036e-1f;
        p = p * z - 3.33332819422e-1f;
        float near = a * (1.0f + p * z);
        far = a < 0.0f ? -far : far;
        y[i] = size < 0.625f ? near : far;
    }
}

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

static void wengert_double_tanh(const double* x, double* y, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) y[i] = tanh(x[i]);
}

static void wengert_double_sigmoid(const double* x, double* y, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) y[i] = 1 / (1 + exp(-x[i]));
}

/* Loops over one operand. tanh and sigmoid of floats are the vectorised ones above. */
#define WENGERT_UNARY(name, real, ABS_, EXP_, LOG_, SQRT_, SIN_, COS_, TANH_, SIGMOID_)       \
static void name(int code, const real* a, real* out, Py_ssize_t n) {                          \
    switch (code) {                                                                           \
    case 0: WENGERT_LOOP(-a[i]); break;                                                       \
    case 1: WENGERT_LOOP(ABS_(a[i])); break;                                                  \
    case 2: WENGERT_LOOP(EXP_(a[i])); break;                                                  \
    case 3: WENGERT_LOOP(LOG_(a[i])); break;                                                  \
    case 4: WENGERT_LOOP(SQRT_(a[i])); break;                                                 \
    case 5: WENGERT_LOOP(SIN_(a[i])); break;                                                  \
    case 6: WENGERT_LOOP(COS_(a[i])); break;                                                  \
    case 7: TANH_(a, out, n); break;                                                          \
    case 8: SIGMOID_(a, out, n); break;                                                       \
    case 9: WENGERT_LOOP(a[i] <= 0 ? 0 : a[i]); break;                                        \
    case 10: WENGERT_LOOP(a[i] * a[i]); break;                                                \
    default: WENGERT_LOOP(1 / a[i]);                                                          \
    }                                                                                         \
}
WENGERT_UNARY(
    wengert_float_unary, float, fabsf, expf, logf, sqrtf, sinf, cosf, wengert_tanh, wengert_sigmoid)
WENGERT_UNARY(
    wengert_double_unary, double, fabs, exp, log, sqrt, sin, cos, wengert_double_tanh,
    wengert_double_sigmoid)

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
