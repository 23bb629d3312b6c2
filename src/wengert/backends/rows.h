/* Fused loops over rows, with the instructions of vectors.h. Sums are those of blocks of BLOCK
   elements, added in double precision, so that long rows lose nothing. */
#define BLOCK 1024

static inline TARGET wengert_real wengert_row_peak(const wengert_real* x, int64_t n) {
    FLOATS peak = CONSTANT(-INFINITY);
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) peak = MAXIMUM(peak, OF(loadu)(x + i));
    wengert_real found = LARGEST(peak);
    for (; i < n; i++) found = x[i] > found ? x[i] : found;
    return found;
}

/* Elements of a vector that are beyond the end of a row do not count in sums. */
static inline TARGET FLOATS wengert_counted(FLOATS v, int64_t left) {
    if (left >= WIDTH) return v;
    wengert_real lanes[WIDTH];
    OF(storeu)(lanes, v);
    for (int64_t i = left; i < WIDTH; i++) lanes[i] = 0;
    return OF(loadu)(lanes);
}

/* The sum of exp(x - peak), which are stored if there is a place for them. */
static inline TARGET double wengert_row_exponentials(
        const wengert_real* x, wengert_real* y, wengert_real peak, int64_t n) {
    double total = 0;
    FLOATS high = CONSTANT(peak);
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        int64_t end = begin + BLOCK < n ? begin + BLOCK : n;
        FLOATS sum = CONSTANT(0);
        for (int64_t i = begin; i < end; i += WIDTH) {
            FLOATS e = wengert_exp(SUB(LOAD(x + i, end - i), high));
            if (y) STORE(y + i, e, end - i);
            sum = ADD(sum, wengert_counted(e, end - i));
        }
        total += TOTAL(sum);
    }
    return total;
}

static TARGET void wengert_softmax(const char* from, char* to, int64_t rows, int64_t n) {
    const wengert_real* x = (const wengert_real*)from;
    wengert_real* y = (wengert_real*)to;
    for (; rows--; x += n, y += n) {
        double total = wengert_row_exponentials(x, y, wengert_row_peak(x, n), n);
        FLOATS sum = CONSTANT((wengert_real)total);
        for (int64_t i = 0; i < n; i += WIDTH) STORE(y + i, DIV(LOAD(y + i, n - i), sum), n - i);
    }
}

static TARGET void wengert_log_softmax(const char* from, char* to, int64_t rows, int64_t n) {
    const wengert_real* x = (const wengert_real*)from;
    wengert_real* y = (wengert_real*)to;
    for (; rows--; x += n, y += n) {
        wengert_real peak = wengert_row_peak(x, n);
        FLOATS high = CONSTANT(peak);
        FLOATS less = CONSTANT((wengert_real)log(wengert_row_exponentials(x, 0, peak, n)));
        for (int64_t i = 0; i < n; i += WIDTH)
            STORE(y + i, SUB(SUB(LOAD(x + i, n - i), high), less), n - i);
    }
}

static TARGET void wengert_logsumexp(const char* from, char* to, int64_t rows, int64_t n) {
    const wengert_real* x = (const wengert_real*)from;
    wengert_real* y = (wengert_real*)to;
    for (; rows--; x += n) {
        wengert_real peak = wengert_row_peak(x, n);
        if (!isfinite(peak)) peak = 0;
        *y++ = (wengert_real)(peak + log(wengert_row_exponentials(x, 0, peak, n)));
    }
}

/* The sum of a row, or of the products of two. */
static inline TARGET double wengert_row_sum(const wengert_real* a, const wengert_real* b, int64_t n) {
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        int64_t end = begin + BLOCK < n ? begin + BLOCK : n;
        FLOATS sum = CONSTANT(0);
        for (int64_t i = begin; i < end; i += WIDTH) {
            FLOATS v = LOAD(a + i, end - i);
            sum = b ? FMA(v, LOAD(b + i, end - i), sum) : ADD(sum, v);
        }
        total += TOTAL(sum);
    }
    return total;
}

static TARGET void wengert_softmax_gradient(
        const char* gradient, const char* value, char* to, int64_t rows, int64_t n) {
    const wengert_real *g = (const wengert_real*)gradient, *y = (const wengert_real*)value;
    wengert_real* out = (wengert_real*)to;
    for (; rows--; g += n, y += n, out += n) {
        FLOATS sum = CONSTANT((wengert_real)wengert_row_sum(g, y, n));
        for (int64_t i = 0; i < n; i += WIDTH) {
            FLOATS v = SUB(LOAD(g + i, n - i), sum);
            STORE(out + i, MUL(LOAD(y + i, n - i), v), n - i);
        }
    }
}

static TARGET void wengert_log_softmax_gradient(
        const char* gradient, const char* value, char* to, int64_t rows, int64_t n) {
    const wengert_real *g = (const wengert_real*)gradient, *y = (const wengert_real*)value;
    wengert_real* out = (wengert_real*)to;
    for (; rows--; g += n, y += n, out += n) {
        FLOATS sum = CONSTANT((wengert_real)wengert_row_sum(g, 0, n));
        for (int64_t i = 0; i < n; i += WIDTH) {
            FLOATS e = MUL(wengert_exp(LOAD(y + i, n - i)), sum);
            STORE(out + i, SUB(LOAD(g + i, n - i), e), n - i);
        }
    }
}

/* The largest element, or the least if the sign is -1; NaN if any element is. */
static inline TARGET double wengert_row_extreme(const wengert_real* x, int64_t n, wengert_real sign) {
    FLOATS best = CONSTANT(-INFINITY), factor = CONSTANT(sign);
    unsigned nans = 0;
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        FLOATS v = MUL(OF(loadu)(x + i), factor);
        nans |= TRUTHS_BITS(UNO(v, v));
        best = MAXIMUM(best, v);
    }
    wengert_real found = LARGEST(best);
    for (; i < n; i++) {
        wengert_real v = x[i] * sign;
        nans |= v != v;
        found = v > found ? v : found;
    }
    return nans ? NAN : found * sign;
}

static inline TARGET double wengert_row_product(const wengert_real* x, int64_t n) {
    double parts[64];
    int64_t i = 0;
    for (int k = 0; k < 64; k++) parts[k] = 1;
    for (; i + 64 <= n; i += 64)
        for (int k = 0; k < 64; k++) parts[k] *= x[i + k];
    for (int k = 0; i < n; i++, k++) parts[k] *= x[i];
    for (int half = 32; half; half /= 2)
        for (int k = 0; k < half; k++) parts[k] *= parts[k + half];
    return parts[0];
}

static inline double wengert_combined(int kind, double a, double b) {
    switch (kind) {
    case WENGERT_LARGEST: return a != a || a > b ? a : b;
    case WENGERT_LEAST: return a != a || a < b ? a : b;
    case WENGERT_PRODUCT: return a * b;
    default: return a + b;
    }
}

#define STRIP 256  /* columns that are reduced at a time */
#define BROAD 1024 /* the same where there is one result for each: rows are read further ahead */
#define RUN 32     /* rows that are added in the type of the elements */

/* Rows to one row, by strips of columns: what is in a strip stays in the cache. */
static inline TARGET void wengert_reduce_columns(
        int kind, const wengert_real* x, double* to, int64_t count, int64_t columns) {
    for (int64_t left = 0; left < columns; left += BROAD) {
        int width = columns - left < BROAD ? (int)(columns - left) : BROAD;
        for (int64_t begin = 0; begin < count; begin += RUN) {
            int64_t end = begin + RUN < count ? begin + RUN : count;
            wengert_real part[BROAD];
            const wengert_real* row = x + begin * columns + left;
            for (int j = 0; j < width; j++)
                part[j] = kind == WENGERT_SQUARES ? row[j] * row[j] : row[j];
            for (int64_t i = begin + 1; i < end; i++) {
                row += columns;
                switch (kind) {
                case WENGERT_SUM:
                    if (i + 3 < end) {
                        const wengert_real *b = row + columns, *c = b + columns, *d = c + columns;
                        for (int j = 0; j < width; j++)
                            part[j] = part[j] + row[j] + b[j] + c[j] + d[j];
                        i += 3;
                        row = d;
                    } else {
                        for (int j = 0; j < width; j++) part[j] += row[j];
                    }
                    break;
                case WENGERT_SQUARES:
                    for (int j = 0; j < width; j++) part[j] += row[j] * row[j];
                    break;
                case WENGERT_LARGEST:
                    for (int j = 0; j < width; j++)
                        part[j] = (part[j] > row[j]) | (part[j] != part[j]) ? part[j] : row[j];
                    break;
                case WENGERT_LEAST:
                    for (int j = 0; j < width; j++)
                        part[j] = (part[j] < row[j]) | (part[j] != part[j]) ? part[j] : row[j];
                    break;
                default: for (int j = 0; j < width; j++) part[j] *= row[j];
                }
            }
            for (int j = 0; j < width; j++)
                to[left + j] = begin ? wengert_combined(kind, to[left + j], part[j]) : part[j];
        }
    }
}

static TARGET void wengert_reduce(
        int kind, const char* from, double* to, int64_t count, int64_t columns) {
    const wengert_real* x = (const wengert_real*)from;
    if (columns > 1) { wengert_reduce_columns(kind, x, to, count, columns); return; }
    switch (kind) {
    case WENGERT_SUM: *to = wengert_row_sum(x, 0, count); break;
    case WENGERT_SQUARES: *to = wengert_row_sum(x, x, count); break;
    case WENGERT_LARGEST: *to = wengert_row_extreme(x, count, 1); break;
    case WENGERT_LEAST: *to = wengert_row_extreme(x, count, -1); break;
    default: *to = wengert_row_product(x, count);
    }
}

/* Four rows at a time: an addition waits for the one before it, but not for that of another row. */
static TARGET void wengert_cumsum(const char* from, char* to, int64_t rows, int64_t n) {
    const wengert_real* x = (const wengert_real*)from;
    wengert_real* y = (wengert_real*)to;
    for (; rows >= 4; rows -= 4, x += 4 * n, y += 4 * n) {
        double a = 0, b = 0, c = 0, d = 0;
        for (int64_t i = 0; i < n; i++) {
            y[i] = (wengert_real)(a += x[i]);
            y[i + n] = (wengert_real)(b += x[i + n]);
            y[i + 2 * n] = (wengert_real)(c += x[i + 2 * n]);
            y[i + 3 * n] = (wengert_real)(d += x[i + 3 * n]);
        }
    }
    for (; rows--; x += n, y += n) {
        double total = 0;
        for (int64_t i = 0; i < n; i++) y[i] = (wengert_real)(total += x[i]);
    }
}

/* The sum of (x - mean) squared. */
static inline TARGET double wengert_row_spread(const wengert_real* x, wengert_real mean, int64_t n) {
    double total = 0;
    FLOATS middle = CONSTANT(mean);
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        int64_t end = begin + BLOCK < n ? begin + BLOCK : n;
        FLOATS sum = CONSTANT(0);
        for (int64_t i = begin; i < end; i += WIDTH) {
            FLOATS v = wengert_counted(SUB(LOAD(x + i, end - i), middle), end - i);
            sum = FMA(v, v, sum);
        }
        total += TOTAL(sum);
    }
    return total;
}

static TARGET void wengert_layer_norm(
        const char* from, const char* weight, const char* bias, char* to, char* means, char* scales,
        int64_t rows, int64_t n, double eps) {
    const wengert_real *x = (const wengert_real*)from, *w = (const wengert_real*)weight;
    const wengert_real* b = (const wengert_real*)bias;
    wengert_real *y = (wengert_real*)to, *m = (wengert_real*)means, *s = (wengert_real*)scales;
    for (; rows--; x += n, y += n) {
        wengert_real mean = (wengert_real)(wengert_row_sum(x, 0, n) / n);
        wengert_real scale = (wengert_real)(1 / sqrt(wengert_row_spread(x, mean, n) / n + eps));
        *m++ = mean;
        *s++ = scale;
        FLOATS middle = CONSTANT(mean), factor = CONSTANT(scale);
        for (int64_t i = 0; i < n; i += WIDTH) {
            FLOATS v = MUL(SUB(LOAD(x + i, n - i), middle), factor);
            if (w) v = MUL(v, LOAD(w + i, n - i));
            if (b) v = ADD(v, LOAD(b + i, n - i));
            STORE(y + i, v, n - i);
        }
    }
}

/* scale * (t - mean(t) - unit * mean(t * unit)) for the gradient t of the standardised elements. */
static TARGET void wengert_layer_norm_gradient(
        const char* gradient, const char* from, const char* weight, const char* means,
        const char* scales, char* to, int64_t rows, int64_t n) {
    const wengert_real *g = (const wengert_real*)gradient, *x = (const wengert_real*)from;
    const wengert_real *w = (const wengert_real*)weight, *m = (const wengert_real*)means;
    const wengert_real* s = (const wengert_real*)scales;
    wengert_real* out = (wengert_real*)to;
    for (; rows--; g += n, x += n, out += n, m++, s++) {
        FLOATS middle = CONSTANT(*m), factor = CONSTANT(*s);
        double plain = 0, weighted = 0;
        for (int64_t begin = 0; begin < n; begin += BLOCK) {
            int64_t end = begin + BLOCK < n ? begin + BLOCK : n;
            FLOATS sum = CONSTANT(0), product = CONSTANT(0);
            for (int64_t i = begin; i < end; i += WIDTH) {
                FLOATS t = LOAD(g + i, end - i);
                if (w) t = MUL(t, LOAD(w + i, end - i));
                sum = ADD(sum, t);
                FLOATS unit = MUL(SUB(LOAD(x + i, end - i), middle), factor);
                product = FMA(t, unit, product);
            }
            plain += TOTAL(sum);
            weighted += TOTAL(product);
        }
        FLOATS less = CONSTANT((wengert_real)(plain / n));
        FLOATS slope = CONSTANT((wengert_real)(weighted / n));
        for (int64_t i = 0; i < n; i += WIDTH) {
            FLOATS t = LOAD(g + i, n - i);
            if (w) t = MUL(t, LOAD(w + i, n - i));
            FLOATS unit = MUL(SUB(LOAD(x + i, n - i), middle), factor);
            STORE(out + i, MUL(factor, SUB(SUB(t, less), MUL(unit, slope))), n - i);
        }
    }
}

/* The sums over rows of gradients times standardised elements, by strips of columns. */
static TARGET void wengert_layer_norm_weight(
        const char* gradient, const char* from, const char* means, const char* scales, double* to,
        int64_t rows, int64_t n) {
    const wengert_real *m = (const wengert_real*)means, *s = (const wengert_real*)scales;
    for (int64_t left = 0; left < n; left += STRIP) {
        int width = n - left < STRIP ? (int)(n - left) : STRIP;
        for (int64_t begin = 0; begin < rows; begin += RUN) {
            int64_t end = begin + RUN < rows ? begin + RUN : rows;
            wengert_real part[STRIP] = {0};
            for (int64_t i = begin; i < end; i++) {
                const wengert_real* g = (const wengert_real*)gradient + i * n + left;
                const wengert_real* x = (const wengert_real*)from + i * n + left;
                for (int j = 0; j < width; j++) part[j] += g[j] * ((x[j] - m[i]) * s[i]);
            }
            for (int j = 0; j < width; j++)
                to[left + j] = begin ? to[left + j] + part[j] : part[j];
        }
    }
}

#define WENGERT_ROWS { \
    wengert_reduce, wengert_softmax, wengert_log_softmax, wengert_logsumexp, wengert_cumsum, \
    wengert_softmax_gradient, wengert_log_softmax_gradient, wengert_layer_norm, \
    wengert_layer_norm_gradient, wengert_layer_norm_weight, WENGERT_STRIPS, \
    wengert_multiply, WENGERT_PANELS, wengert_run_program}
