/* Eigenvalues and eigenvectors of small symmetric matrices: reflections make a matrix tridiagonal,
   and rotations with shifts make that diagonal, in LAPACK's order of steps.

   Included once for every type of elements, after systems.h, with its REAL and NAME. */

#ifndef WENGERT_STEPS_EACH
#define WENGERT_STEPS_EACH 30 /* for every row, before the search is given up */
#endif

/* Two rows of vectors, turned by an angle. */
static inline void NAME(turn)(REAL *low, REAL *high, Py_ssize_t n, REAL c, REAL s) {
    for (Py_ssize_t i = 0; i < n; i++) {
        const REAL kept = high[i];
        high[i] = c * kept - s * low[i];
        low[i] = s * kept + c * low[i];
    }
}

/* The rotation that makes the second of two numbers zero, and the first that length. */
static inline REAL NAME(rotation)(REAL f, REAL g, REAL *c, REAL *s) {
    if (g == 0) {
        *c = 1;
        *s = 0;
        return f;
    }
    if (f == 0) {
        *c = 0;
        *s = g < 0 ? -1 : 1;
        return NAME(size)(g);
    }
    const REAL squares = f * f + g * g;
    REAL length = squares > NAME(least) ? NAME(root)(squares) : NAME(distance)(f, g);
    *c = NAME(size)(f) / length;
    if (f < 0) length = -length;
    *s = g / length;
    return length;
}

/* The spectrum of [[a, b], [b, c]]: the larger value by size, the other one, a vector. */
static void NAME(pair)(REAL a, REAL b, REAL c, REAL *first, REAL *second, REAL *cosine, REAL *sine) {
    const REAL sum = a + c, gap = a - c, twice = b + b;
    const REAL wide = NAME(size)(gap), off = NAME(size)(twice);
    const REAL most = NAME(size)(a) > NAME(size)(c) ? a : c;
    const REAL least = NAME(size)(a) > NAME(size)(c) ? c : a;
    const REAL longer = wide > off ? wide : off, shorter = wide > off ? off : wide;
    const REAL part = longer > 0 ? shorter / longer : 0;
    const REAL root = longer * NAME(root)(1 + part * part);
    int same = 1;
    if (sum == 0) {
        *first = root / 2;
        *second = -root / 2;
    } else {
        *first = sum < 0 ? (sum - root) / 2 : (sum + root) / 2;
        *second = (most / *first) * least - (b / *first) * b;
        same = sum < 0 ? -1 : 1;
    }
    const int side = gap >= 0 ? 1 : -1;
    const REAL leg = gap + side * root;
    if (NAME(size)(leg) > off) {
        const REAL ratio = -twice / leg;
        *sine = 1 / NAME(root)(1 + ratio * ratio);
        *cosine = ratio * *sine;
    } else if (off == 0) {
        *cosine = 1;
        *sine = 0;
    } else {
        const REAL ratio = -leg / twice;
        *cosine = 1 / NAME(root)(1 + ratio * ratio);
        *sine = ratio * *cosine;
    }
    if (same == side) {
        const REAL kept = *cosine;
        *cosine = -*sine;
        *sine = kept;
    }
}

/* Makes a symmetric matrix tridiagonal, d on the diagonal and e beside it; the rows of `z` become
   the vectors that do it, unless `z` is null. 0 where squares would lose digits below the least
   number. */
static int NAME(tridiagonal)(REAL *a, REAL *d, REAL *e, REAL *z, Py_ssize_t n) {
    REAL scales[WIDEST], product[WIDEST];
    for (Py_ssize_t k = 0; k + 1 < n; k++) {
        /* the mirror of column k below the diagonal, kept in row k */
        REAL *v = a + k * WIDEST, squares = 0, sizes = 0, scale = 0;
        for (Py_ssize_t i = k + 2; i < n; i++) {
            squares += v[i] * v[i];
            sizes += NAME(size)(v[i]);
        }
        if (sizes != 0 && squares < NAME(least) / NAME(epsilon)) return 0;
        REAL head = v[k + 1];
        if (squares > 0) {
            REAL length = NAME(root)(head * head + squares);
            if (head > 0) length = -length;
            scale = (length - head) / length;
            const REAL inverse = 1 / (head - length);
            for (Py_ssize_t i = k + 2; i < n; i++) v[i] *= inverse;
            head = length;
        }
        e[k] = head;
        v[k + 1] = 1;
        scales[k] = scale;
        d[k] = v[k];
        if (scale == 0) continue;
        REAL along = 0;
        for (Py_ssize_t i = k + 1; i < n; i++) product[i] = 0;
        for (Py_ssize_t i = k + 1; i < n; i++) {
            const REAL factor = scale * v[i], *row = a + i * WIDEST;
            for (Py_ssize_t j = k + 1; j < n; j++) product[j] += factor * row[j];
        }
        for (Py_ssize_t i = k + 1; i < n; i++) along += product[i] * v[i];
        along *= scale / 2;
        for (Py_ssize_t i = k + 1; i < n; i++) product[i] -= along * v[i];
        for (Py_ssize_t i = k + 1; i < n; i++) {
            REAL *row = a + i * WIDEST;
            const REAL one = v[i], other = product[i];
            for (Py_ssize_t j = k + 1; j < n; j++) row[j] -= one * product[j] + other * v[j];
        }
    }
    d[n - 1] = a[(n - 1) * WIDEST + n - 1];
    if (!z) return 1;
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t j = 0; j < n; j++) z[i * WIDEST + j] = i == j;
    for (Py_ssize_t k = n - 2; k >= 0; k--) {
        const REAL *v = a + k * WIDEST;
        if (scales[k] == 0) continue;
        for (Py_ssize_t i = k + 1; i < n; i++) {
            REAL *row = z + i * WIDEST, along = 0;
            for (Py_ssize_t j = k + 1; j < n; j++) along += row[j] * v[j];
            along *= scales[k];
            for (Py_ssize_t j = k + 1; j < n; j++) row[j] -= along * v[j];
        }
    }
    return 1;
}

static inline int NAME(is_small)(REAL beside, REAL one, REAL other) {
    const REAL half = NAME(epsilon) / 2;
    return beside * beside <= half * half * NAME(size)(one) * NAME(size)(other) + NAME(least);
}

/* Makes a tridiagonal matrix diagonal and turns the rows of `z` with it; 0 if that does not end.
   A block is worked off from the end where its numbers are smaller. */
static int NAME(diagonal)(REAL *d, REAL *e, REAL *z, Py_ssize_t n) {
    Py_ssize_t begin = 0;
    int steps = (int)n * WENGERT_STEPS_EACH;
    while (begin < n) {
        Py_ssize_t end = begin;
        while (end + 1 < n && !NAME(is_small)(e[end], d[end], d[end + 1])) end++;
        if (end + 1 < n) e[end] = 0;
        Py_ssize_t l = begin, last = end;
        begin = end + 1;
        if (last == l) continue;
        const int up = NAME(size)(d[last]) < NAME(size)(d[l]); /* from the end to the front */
        if (up) {
            const Py_ssize_t kept = l;
            l = last;
            last = kept;
        }
        const int by = up ? -1 : 1;
        /* e between places i and i + by is e[i + beside] */
        const Py_ssize_t beside = up ? -1 : 0;
        while (up ? l >= last : l <= last) {
            Py_ssize_t m = l;
            while (m != last && !NAME(is_small)(e[m + beside], d[m], d[m + by])) m += by;
            if (m != last) e[m + beside] = 0;
            if (m == l) {
                l += by;
                continue;
            }
            if (m == l + by) {
                const Py_ssize_t low = up ? l - 1 : l;
                REAL c, s;
                NAME(pair)(d[low], e[low], d[low + 1], d + low, d + low + 1, &c, &s);
                if (z) NAME(turn)(z + low * WIDEST, z + (low + 1) * WIDEST, n, c, s);
                e[low] = 0;
                l += 2 * by;
                continue;
            }
            if (!steps--) return 0;
            REAL p = d[l], g = (d[l + by] - p) / (2 * e[l + beside]);
            REAL r = NAME(distance)(g, 1), c = 1, s = 1;
            g = d[m] - p + e[l + beside] / (g + (g < 0 ? -r : r));
            p = 0;
            for (Py_ssize_t i = m; i != l; i -= by) {
                /* between i and the place before it, which is nearer to l */
                const Py_ssize_t near = i - by, link = near + beside;
                const REAL f = s * e[link], b = c * e[link];
                r = NAME(rotation)(g, f, &c, &s);
                if (i != m) e[i + beside] = r;
                g = d[i] - p;
                r = (d[near] - g) * s + 2 * c * b;
                p = s * r;
                d[i] = g + p;
                g = c * r - b;
                if (z) {
                    const Py_ssize_t low = up ? i : near;
                    NAME(turn)(z + low * WIDEST, z + (low + 1) * WIDEST, n, c, up ? s : -s);
                }
            }
            d[l] -= p;
            e[l + beside] = g;
        }
    }
    return 1;
}

/* The eigenvalues of one matrix in ascending order and, unless `vectors` is null, the eigenvectors
   one after the other. The lower triangle is read. 0 where sizes ask for more care. */
static int NAME(spectrum)(const REAL *from, Py_ssize_t down, Py_ssize_t across, REAL *values,
                          REAL *vectors, Py_ssize_t n) {
    REAL a[WIDEST * WIDEST], z[WIDEST * WIDEST], e[WIDEST], largest = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t j = 0; j <= i; j++) {
            const REAL value = from[i * down + j * across], found = NAME(size)(value);
            if (!(found <= NAME(most))) return 0;
            if (found > largest) largest = found;
            a[i * WIDEST + j] = a[j * WIDEST + i] = value;
        }
    if (largest != 0 && largest < 1 / NAME(most)) return 0;
    if (!NAME(tridiagonal)(a, values, e, vectors ? z : 0, n)) return 0;
    if (!NAME(diagonal)(values, e, vectors ? z : 0, n)) return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t best = i;
        for (Py_ssize_t j = i + 1; j < n; j++)
            if (values[j] < values[best]) best = j;
        if (best == i) continue;
        const REAL kept = values[i];
        values[i] = values[best];
        values[best] = kept;
        if (vectors) NAME(exchange)(z + i * WIDEST, z + best * WIDEST, 0, n);
    }
    if (vectors)
        for (Py_ssize_t i = 0; i < n; i++)
            for (Py_ssize_t j = 0; j < n; j++) vectors[i * n + j] = z[i * WIDEST + j];
    return 1;
}
