/* Fourier transforms of lengths that are powers of two, by passes of four (and one of two) that need
   no reordering. Real and imaginary parts lie apart while a transform is computed.

   Included once for every type of elements, REAL; NAME(x) is x with the name of the type. An inverse
   transform is the transform with real and imaginary parts exchanged. */

#include <math.h>
#include <stdlib.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define WENGERT_FOURIER __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WENGERT_FOURIER
#endif

#ifndef WENGERT_LONGEST
#define WENGERT_LONGEST 16 /* the binary logarithm of the greatest length */
#endif

/* Rooms are apart by more than they are long: streams at multiples of a page get into each other's way. */
#ifndef WENGERT_GAP
#define WENGERT_GAP 1088 /* bytes */
#endif
#define WENGERT_APART(size) ((size) + WENGERT_GAP / (Py_ssize_t)sizeof(REAL))

/* Three powers of the roots of unity, real and imaginary parts, each for a quarter of the length;
   kept once they were needed. */
static REAL *NAME(roots)[WENGERT_LONGEST + 2];

static int NAME(prepare)(int power) {
    if (NAME(roots)[power]) return 1;
    const Py_ssize_t n = (Py_ssize_t)1 << power, quarter = n / 4 + 1;
    REAL *made = malloc(6 * quarter * sizeof(REAL));
    if (!made) return 0;
    for (Py_ssize_t k = 1; k <= 3; k++)
        for (Py_ssize_t i = 0; i < quarter; i++) {
            const double angle = -2 * 3.14159265358979323846 * (double)(k * i) / (double)n;
            made[(2 * k - 2) * quarter + i] = (REAL)cos(angle);
            made[(2 * k - 1) * quarter + i] = (REAL)sin(angle);
        }
    NAME(roots)[power] = made;
    return 1;
}

#ifdef __GNUC__
/* Four numbers that are computed with at once, anywhere in memory. */
typedef REAL NAME(quad)
    __attribute__((vector_size(4 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
#endif

#define WENGERT_FOUR(type, yr, yi, i, o, next)                                                    \
    const type ar = r0[i] + r2[i], ai = i0[i] + i2[i], br = r0[i] - r2[i], bi = i0[i] - i2[i],     \
               cr = r1[i] + r3[i], ci = i1[i] + i3[i], dr = i1[i] - i3[i], di = r3[i] - r1[i];     \
    const type er = br + dr, ei = bi + di, fr = ar - cr, fi = ai - ci, gr = br - dr, gi = bi - di; \
    yr[o] = ar + cr;                                                                               \
    yi[o] = ai + ci;                                                                               \
    yr[o + next] = er * c1 - ei * s1;                                                              \
    yi[o + next] = er * s1 + ei * c1;                                                              \
    yr[o + 2 * next] = fr * c2 - fi * s2;                                                          \
    yi[o + 2 * next] = fr * s2 + fi * c2;                                                          \
    yr[o + 3 * next] = gr * c3 - gi * s3;                                                          \
    yi[o + 3 * next] = gr * s3 + gi * c3;
#define WENGERT_ROWS                                                                              \
    const REAL *r0 = xr, *r1 = xr + part, *r2 = xr + 2 * part, *r3 = xr + 3 * part;                \
    const REAL *i0 = xi, *i1 = xi + part, *i2 = xi + 2 * part, *i3 = xi + 3 * part;
#define WENGERT_ROOTS(w)                                                                          \
    const REAL c1 = w1[w], s1 = v1[w], c2 = w2[w], s2 = v2[w], c3 = w3[w], s3 = v3[w];

/* One pass of four over `s` transforms side by side, of which parts of length n are left. */
static WENGERT_FOURIER void NAME(four)(const REAL *restrict xr, const REAL *restrict xi,
                                       REAL *restrict yr, REAL *restrict yi, Py_ssize_t n,
                                       Py_ssize_t s, const REAL *restrict roots,
                                       Py_ssize_t quarter, Py_ssize_t step) {
    const Py_ssize_t m = n / 4, part = m * s;
    const REAL *w1 = roots, *v1 = w1 + quarter, *w2 = v1 + quarter, *v2 = w2 + quarter,
               *w3 = v2 + quarter, *v3 = w3 + quarter;
    if (s == 1) {
        WENGERT_ROWS
#pragma GCC ivdep
        for (Py_ssize_t p = 0; p < m; p++) {
            WENGERT_ROOTS(p)
            WENGERT_FOUR(REAL, yr, yi, p, 4 * p, 1)
        }
#ifdef __GNUC__
    } else if (s == 4) {
        const NAME(quad) *r0 = (const NAME(quad) *)xr, *r1 = r0 + m, *r2 = r1 + m, *r3 = r2 + m;
        const NAME(quad) *i0 = (const NAME(quad) *)xi, *i1 = i0 + m, *i2 = i1 + m, *i3 = i2 + m;
        NAME(quad) *to_r = (NAME(quad) *)yr, *to_i = (NAME(quad) *)yi;
        for (Py_ssize_t p = 0; p < m; p++) {
            WENGERT_ROOTS(p * step)
            WENGERT_FOUR(NAME(quad), to_r, to_i, p, 4 * p, 1)
        }
#endif
    } else if (s % 16 == 0) {
        for (Py_ssize_t p = 0; p < m; p++, yr += 3 * s, yi += 3 * s) {
            WENGERT_ROOTS(p * step)
            for (Py_ssize_t block = 0; block < s; block += 16, xr += 16, xi += 16, yr += 16, yi += 16) {
                WENGERT_ROWS
#pragma GCC ivdep
                for (Py_ssize_t q = 0; q < 16; q++) {
                    WENGERT_FOUR(REAL, yr, yi, q, q, s)
                }
            }
        }
    } else {
        for (Py_ssize_t p = 0; p < m; p++, xr += s, xi += s, yr += 4 * s, yi += 4 * s) {
            WENGERT_ROOTS(p * step)
            WENGERT_ROWS
#pragma GCC ivdep
            for (Py_ssize_t q = 0; q < s; q++) {
                WENGERT_FOUR(REAL, yr, yi, q, q, s)
            }
        }
    }
}

static WENGERT_FOURIER void NAME(two)(const REAL *restrict xr, const REAL *restrict xi,
                                      REAL *restrict yr, REAL *restrict yi, Py_ssize_t s) {
    for (Py_ssize_t q = 0; q < s; q++) {
        yr[q] = xr[q] + xr[q + s];
        yi[q] = xi[q] + xi[q + s];
        yr[q + s] = xr[q] - xr[q + s];
        yi[q + s] = xi[q] - xi[q + s];
    }
}

/* Transforms of 2 ** power places, `side` of them side by side, from four buffers: real and imaginary
   parts and room for as many. 1 if the result is in the room. */
static int NAME(passes)(REAL *const *rooms, int power, Py_ssize_t side) {
    const Py_ssize_t length = (Py_ssize_t)1 << power, quarter = length / 4 + 1;
    const REAL *roots = NAME(roots)[power];
    Py_ssize_t n = length, s = side;
    int now = 0;
    for (; n >= 4; n /= 4, s *= 4, now ^= 2)
        NAME(four)(rooms[now], rooms[now + 1], rooms[now ^ 2], rooms[(now ^ 2) + 1], n, s, roots,
                   quarter, length / n);
    if (n == 2) {
        NAME(two)(rooms[now], rooms[now + 1], rooms[now ^ 2], rooms[(now ^ 2) + 1], s);
        now ^= 2;
    }
    return now != 0;
}

/* Pairs of numbers into two rows, and two rows into pairs. */
static WENGERT_FOURIER void NAME(apart)(const REAL *restrict x, REAL *restrict one,
                                        REAL *restrict other, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        one[i] = x[2 * i];
        other[i] = x[2 * i + 1];
    }
}

static WENGERT_FOURIER void NAME(together)(const REAL *restrict one, const REAL *restrict other,
                                           REAL *restrict y, Py_ssize_t count, REAL scale) {
    for (Py_ssize_t i = 0; i < count; i++) {
        y[2 * i] = one[i] * scale;
        y[2 * i + 1] = other[i] * scale;
    }
}

/* Complex transforms along a dimension that is followed by `inner` elements, of which those from
   `begin` to `end` are taken. */
static void NAME(complex)(const REAL *x, REAL *y, int power, Py_ssize_t inner, Py_ssize_t begin,
                          Py_ssize_t end, int backward, REAL scale, REAL *room) {
    const Py_ssize_t n = (Py_ssize_t)1 << power, side = end - begin, size = n * side;
    const Py_ssize_t next = WENGERT_APART(size);
    REAL *rooms[4] = {room, room + next, room + 2 * next, room + 3 * next};
    if (backward) {
        rooms[0] = room + next;
        rooms[1] = room;
        rooms[2] = room + 3 * next;
        rooms[3] = room + 2 * next;
    }
    if (side == inner)
        NAME(apart)(x, room, room + next, size);
    else
        for (Py_ssize_t i = 0; i < n; i++)
            NAME(apart)(x + 2 * (i * inner + begin), room + i * side, room + next + i * side, side);
    const REAL *found = NAME(passes)(rooms, power, side) ? room + 2 * next : room;
    if (side == inner)
        NAME(together)(found, found + next, y, size, scale);
    else
        for (Py_ssize_t i = 0; i < n; i++)
            NAME(together)(found + i * side, found + next + i * side, y + 2 * (i * inner + begin),
                           side, scale);
}

/* From the transform of pairs of real numbers to the first half of that of the numbers. */
static WENGERT_FOURIER void NAME(halve)(const REAL *restrict zr, const REAL *restrict zi,
                                        REAL *restrict y, Py_ssize_t n, const REAL *restrict cosines,
                                        const REAL *restrict sines, REAL scale) {
    const REAL half = scale / 2;
    y[0] = (zr[0] + zi[0]) * scale;
    y[1] = 0;
    y[2 * n] = (zr[0] - zi[0]) * scale;
    y[2 * n + 1] = 0;
    for (Py_ssize_t k = 1; k < n; k++) {
        const REAL ar = zr[k] + zr[n - k], ai = zi[k] - zi[n - k];
        const REAL br = zr[k] - zr[n - k], bi = zi[k] + zi[n - k];
        y[2 * k] = half * (ar + br * sines[k] + bi * cosines[k]);
        y[2 * k + 1] = half * (ai + bi * sines[k] - br * cosines[k]);
    }
}

static WENGERT_FOURIER void NAME(mirror)(const REAL *restrict x, REAL *restrict y, Py_ssize_t n) {
    for (Py_ssize_t k = 1; k < n; k++) { /* y ends where x[n] begins */
        y[2 * k] = x[2 * (n - k)];
        y[2 * k + 1] = -x[2 * (n - k) + 1];
    }
}

/* The first half of the transform of 2 ** (power + 1) real numbers, or all of it. */
static void NAME(real)(const REAL *x, REAL *y, int power, int whole, REAL scale, REAL *room) {
    const Py_ssize_t n = (Py_ssize_t)1 << power, next = WENGERT_APART(n);
    REAL *rooms[4] = {room, room + next, room + 2 * next, room + 3 * next};
    NAME(apart)(x, rooms[0], rooms[1], n);
    const REAL *found = rooms[NAME(passes)(rooms, power, 1) ? 2 : 0];
    const REAL *roots = NAME(roots)[power + 2];
    const Py_ssize_t quarter = n + 1;
    /* the second power of the roots of 4 n places is that of 2 n places */
    NAME(halve)(found, found + next, y, n, roots + 2 * quarter, roots + 3 * quarter, scale);
    if (whole) NAME(mirror)(y, y + 2 * n, n);
}

static WENGERT_FOURIER void NAME(join)(const REAL *restrict x, REAL *restrict zr, REAL *restrict zi,
                                       Py_ssize_t n, const REAL *restrict cosines,
                                       const REAL *restrict sines) {
    zr[0] = x[0] + x[2 * n];
    zi[0] = x[0] - x[2 * n];
    for (Py_ssize_t k = 1; k < n; k++) {
        const REAL ar = x[2 * k] + x[2 * (n - k)], ai = x[2 * k + 1] - x[2 * (n - k) + 1];
        const REAL br = x[2 * k] - x[2 * (n - k)], bi = x[2 * k + 1] + x[2 * (n - k) + 1];
        zr[k] = ar - bi * cosines[k] + br * sines[k];
        zi[k] = ai + br * cosines[k] + bi * sines[k];
    }
}

/* The 2 ** (power + 1) real numbers of which half a transform is given. */
static void NAME(inverse)(const REAL *x, REAL *y, int power, REAL scale, REAL *room) {
    const Py_ssize_t n = (Py_ssize_t)1 << power, next = WENGERT_APART(n);
    REAL *rooms[4] = {room + next, room, room + 3 * next, room + 2 * next};
    const REAL *roots = NAME(roots)[power + 2];
    const Py_ssize_t quarter = n + 1;
    NAME(join)(x, room, room + next, n, roots + 2 * quarter, roots + 3 * quarter);
    const REAL *found = NAME(passes)(rooms, power, 1) ? room + 2 * next : room;
    NAME(together)(found, found + next, y, n, scale);
}
/* What Bluestein's way multiplies a row by, before and after its convolution: `n` chirps. */
static WENGERT_FOURIER void NAME(chirp)(const REAL *restrict xr, const REAL *restrict xi,
                                        const REAL *restrict wr, const REAL *restrict wi,
                                        REAL *restrict yr, REAL *restrict yi, Py_ssize_t n,
                                        REAL scale) {
    for (Py_ssize_t i = 0; i < n; i++) {
        const REAL a = xr[i] * scale, b = xi[i] * scale;
        yr[i] = a * wr[i] - b * wi[i];
        yi[i] = a * wi[i] + b * wr[i];
    }
}

static WENGERT_FOURIER void NAME(chirp_real)(const REAL *restrict x, const REAL *restrict wr,
                                             const REAL *restrict wi, REAL *restrict yr,
                                             REAL *restrict yi, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) {
        yr[i] = x[i] * wr[i];
        yi[i] = x[i] * wi[i];
    }
}

/* A transform of any length `n`, as a convolution with a chirp of 2 ** power >= 2 n - 1 places, by
   `table`: the real parts of n chirps, their imaginary parts, those of the transform of the inverse
   chirp. Kinds are those of fourier_loops.pyx: complex to complex, real to half, real to whole, half
   to real. The room is that of a complex transform of the greater length and 2 n more. */
static void NAME(any)(const REAL *x, REAL *y, Py_ssize_t n, int power, int kind, int backward,
                      REAL scale, const REAL *table, REAL *room) {
    const Py_ssize_t size = (Py_ssize_t)1 << power, next = WENGERT_APART(size), half = n / 2 + 1;
    const REAL *wr = table, *wi = wr + n, *tr = wi + n, *ti = tr + size;
    REAL *one = room + 4 * next, *other = one + n;
    REAL *rooms[4] = {room, room + next, room + 2 * next, room + 3 * next};
    if (kind == 1 || kind == 2) {
        NAME(chirp_real)(x, wr, wi, rooms[0], rooms[1], n);
    } else {
        if (kind == 0) {
            NAME(apart)(x, one, other, n);
        } else {
            NAME(apart)(x, one, other, half);
            other[0] = 0; /* what real numbers have there is real, whatever is given */
            if (n % 2 == 0) other[n / 2] = 0;
            for (Py_ssize_t k = half; k < n; k++) {
                one[k] = one[n - k];
                other[k] = -other[n - k];
            }
        }
        if (backward)
            NAME(chirp)(other, one, wr, wi, rooms[0], rooms[1], n, 1);
        else
            NAME(chirp)(one, other, wr, wi, rooms[0], rooms[1], n, 1);
    }
    for (Py_ssize_t i = n; i < size; i++) rooms[0][i] = rooms[1][i] = 0;
    const int now = NAME(passes)(rooms, power, 1) ? 2 : 0, then = now ^ 2;
    NAME(chirp)(rooms[now], rooms[now + 1], tr, ti, rooms[then], rooms[then + 1], size, 1);
    REAL *turned[4] = {rooms[then + 1], rooms[then], rooms[now + 1], rooms[now]};
    const int last = NAME(passes)(turned, power, 1) ? 2 : 0;
    REAL *imaginary = turned[last], *real = turned[last + 1];
    NAME(chirp)(real, imaginary, wr, wi, one, other, n, scale);
    if (kind == 0 && backward) {
        NAME(together)(other, one, y, n, 1);
    } else if (kind == 3) {
        for (Py_ssize_t i = 0; i < n; i++) y[i] = backward ? other[i] : one[i];
    } else {
        NAME(together)(one, other, y, kind == 1 ? half : n, 1);
        if (kind != 0) y[1] = 0;
        if (kind == 2)
            for (Py_ssize_t k = half; k < n; k++) {
                y[2 * k] = y[2 * (n - k)];
                y[2 * k + 1] = -y[2 * (n - k) + 1];
            }
        if (kind != 0 && n % 2 == 0) y[n + 1] = 0;
    }
}
#undef WENGERT_FOUR
#undef WENGERT_ROWS
#undef WENGERT_ROOTS
#undef WENGERT_APART
