/* Fused loops down the columns of a matrix, with the instructions of vectors.h: `count` rows of which
   `width` columns are taken, at most STRIP; `columns` is from one row to the next. Where `columns` is 1
   the one column is contiguous and taken as a row. Sums are added in double precision. */

static TARGET void wengert_strip_spread(
        const char* from, const char* means, double* to, int64_t count, int64_t columns, int64_t width) {
    const wengert_real *x = (const wengert_real*)from, *m = (const wengert_real*)means;
    if (columns == 1) { *to = wengert_row_spread(x, *m, count); return; }
    for (int j = 0; j < width; j++) to[j] = 0;
    for (int64_t begin = 0; begin < count; begin += RUN) {
        int64_t end = begin + RUN < count ? begin + RUN : count;
        wengert_real part[STRIP] = {0};
        for (int64_t i = begin; i < end; i++) {
            const wengert_real* row = x + i * columns;
            for (int j = 0; j < width; j++) {
                wengert_real away = row[j] - m[j];
                part[j] += away * away;
            }
        }
        for (int j = 0; j < width; j++) to[j] += part[j];
    }
}

/* (x - mean) * factor + bias, where there is one. */
static TARGET void wengert_strip_affine(
        const char* from, const char* means, const char* factors, const char* biases, char* to,
        int64_t count, int64_t columns, int64_t width) {
    const wengert_real *x = (const wengert_real*)from, *m = (const wengert_real*)means;
    const wengert_real *f = (const wengert_real*)factors, *b = (const wengert_real*)biases;
    wengert_real* y = (wengert_real*)to;
    if (columns == 1) {
        wengert_real mean = *m, factor = *f, bias = b ? *b : 0;
        if (b) for (int64_t i = 0; i < count; i++) y[i] = (x[i] - mean) * factor + bias;
        else for (int64_t i = 0; i < count; i++) y[i] = (x[i] - mean) * factor;
        return;
    }
    for (int64_t i = 0; i < count; i++, x += columns, y += columns) {
        if (b) for (int j = 0; j < width; j++) y[j] = (x[j] - m[j]) * f[j] + b[j];
        else for (int j = 0; j < width; j++) y[j] = (x[j] - m[j]) * f[j];
    }
}

/* The sums of g and of g * (x - mean). */
static TARGET void wengert_strip_products(
        const char* gradient, const char* from, const char* means, double* plain, double* weighted,
        int64_t count, int64_t columns, int64_t width) {
    const wengert_real *g = (const wengert_real*)gradient, *x = (const wengert_real*)from;
    const wengert_real* m = (const wengert_real*)means;
    if (columns == 1) {
        FLOATS middle = CONSTANT(*m);
        *plain = *weighted = 0;
        for (int64_t begin = 0; begin < count; begin += BLOCK) {
            int64_t end = begin + BLOCK < count ? begin + BLOCK : count;
            FLOATS sum = CONSTANT(0), product = CONSTANT(0);
            for (int64_t i = begin; i < end; i += WIDTH) {
                FLOATS t = LOAD(g + i, end - i);
                sum = ADD(sum, t);
                product = FMA(t, SUB(LOAD(x + i, end - i), middle), product);
            }
            *plain += TOTAL(sum);
            *weighted += TOTAL(product);
        }
        return;
    }
    for (int j = 0; j < width; j++) plain[j] = weighted[j] = 0;
    for (int64_t begin = 0; begin < count; begin += RUN) {
        int64_t end = begin + RUN < count ? begin + RUN : count;
        wengert_real sum[STRIP] = {0}, product[STRIP] = {0};
        for (int64_t i = begin; i < end; i++) {
            const wengert_real *down = g + i * columns, *row = x + i * columns;
            for (int j = 0; j < width; j++) {
                sum[j] += down[j];
                product[j] += down[j] * (row[j] - m[j]);
            }
        }
        for (int j = 0; j < width; j++) { plain[j] += sum[j]; weighted[j] += product[j]; }
    }
}

/* (g - less) * factor - (x - mean) * slope. */
static TARGET void wengert_strip_centred(
        const char* gradient, const char* from, const char* means, const char* lesses,
        const char* factors, const char* slopes, char* to, int64_t count, int64_t columns,
        int64_t width) {
    const wengert_real *g = (const wengert_real*)gradient, *x = (const wengert_real*)from;
    const wengert_real *m = (const wengert_real*)means, *l = (const wengert_real*)lesses;
    const wengert_real *f = (const wengert_real*)factors, *s = (const wengert_real*)slopes;
    wengert_real* y = (wengert_real*)to;
    if (columns == 1) {
        wengert_real mean = *m, less = *l, factor = *f, slope = *s;
        for (int64_t i = 0; i < count; i++)
            y[i] = (g[i] - less) * factor - (x[i] - mean) * slope;
        return;
    }
    for (int64_t i = 0; i < count; i++, x += columns, g += columns, y += columns)
        for (int j = 0; j < width; j++) y[j] = (g[j] - l[j]) * f[j] - (x[j] - m[j]) * s[j];
}

static TARGET void wengert_strip_peak(
        const wengert_real* x, wengert_real* peak, int64_t count, int64_t columns, int64_t width) {
    for (int j = 0; j < width; j++) peak[j] = x[j];
    for (int64_t i = 1; i < count; i++) {
        x += columns;
        for (int j = 0; j < width; j++) peak[j] = x[j] > peak[j] ? x[j] : peak[j];
    }
}

/* The sums of exp(x - peak), which are stored if there is a place for them. */
static TARGET void wengert_strip_exponentials(
        const wengert_real* x, wengert_real* y, const wengert_real* peak, double* total,
        int64_t count, int64_t columns, int64_t width) {
    for (int j = 0; j < width; j++) total[j] = 0;
    for (int64_t begin = 0; begin < count; begin += RUN) {
        int64_t end = begin + RUN < count ? begin + RUN : count;
        wengert_real part[STRIP + WIDTH] = {0};
        for (int64_t i = begin; i < end; i++)
            for (int j = 0; j < width; j += WIDTH) {
                FLOATS v = SUB(LOAD(x + i * columns + j, width - j), LOAD(peak + j, width - j));
                FLOATS e = wengert_exp(v);
                if (y) STORE(y + i * columns + j, e, width - j);
                OF(storeu)(part + j, ADD(OF(loadu)(part + j), e));
            }
        for (int j = 0; j < width; j++) total[j] += part[j];
    }
}

static TARGET void wengert_strip_softmax(
        int is_log, const char* from, char* to, int64_t count, int64_t columns, int64_t width) {
    const wengert_real* x = (const wengert_real*)from;
    wengert_real *y = (wengert_real*)to, peak[STRIP], sum[STRIP];
    double total[STRIP];
    wengert_strip_peak(x, peak, count, columns, width);
    wengert_strip_exponentials(x, is_log ? 0 : y, peak, total, count, columns, width);
    for (int j = 0; j < width; j++) sum[j] = (wengert_real)(is_log ? log(total[j]) : total[j]);
    for (int64_t i = 0; i < count; i++, x += columns, y += columns) {
        if (is_log) for (int j = 0; j < width; j++) y[j] = x[j] - peak[j] - sum[j];
        else for (int j = 0; j < width; j++) y[j] /= sum[j];
    }
}

static TARGET void wengert_strip_logsumexp(
        const char* from, char* to, int64_t count, int64_t columns, int64_t width) {
    const wengert_real* x = (const wengert_real*)from;
    wengert_real *y = (wengert_real*)to, peak[STRIP];
    double total[STRIP];
    wengert_strip_peak(x, peak, count, columns, width);
    for (int j = 0; j < width; j++) peak[j] = isfinite(peak[j]) ? peak[j] : 0;
    wengert_strip_exponentials(x, 0, peak, total, count, columns, width);
    for (int j = 0; j < width; j++) y[j] = (wengert_real)(peak[j] + log(total[j]));
}

static TARGET void wengert_strip_softmax_gradient(
        int is_log, const char* gradient, const char* value, char* to, int64_t count,
        int64_t columns, int64_t width) {
    const wengert_real *g = (const wengert_real*)gradient, *y = (const wengert_real*)value;
    wengert_real *out = (wengert_real*)to, sum[STRIP];
    double total[STRIP] = {0};
    for (int64_t i = 0; i < count; i++) {
        const wengert_real *down = g + i * columns, *row = y + i * columns;
        if (is_log) for (int j = 0; j < width; j++) total[j] += down[j];
        else for (int j = 0; j < width; j++) total[j] += down[j] * row[j];
    }
    for (int j = 0; j < width; j++) sum[j] = (wengert_real)total[j];
    for (int64_t i = 0; i < count; i++, g += columns, y += columns, out += columns) {
        if (!is_log) { for (int j = 0; j < width; j++) out[j] = y[j] * (g[j] - sum[j]); continue; }
        for (int j = 0; j < width; j += WIDTH) {
            FLOATS e = MUL(wengert_exp(LOAD(y + j, width - j)), LOAD(sum + j, width - j));
            STORE(out + j, SUB(LOAD(g + j, width - j), e), width - j);
        }
    }
}

/* g * exp(x - out): the gradient of logsumexp; of a row, if `columns` is 1. */
static TARGET void wengert_strip_shares(
        const char* gradient, const char* from, const char* value, char* to, int64_t count,
        int64_t columns, int64_t width) {
    const wengert_real *g = (const wengert_real*)gradient, *x = (const wengert_real*)from;
    const wengert_real* y = (const wengert_real*)value;
    wengert_real* out = (wengert_real*)to;
    if (columns == 1) {
        FLOATS factor = CONSTANT(*g), less = CONSTANT(*y);
        for (int64_t i = 0; i < count; i += WIDTH) {
            FLOATS e = wengert_exp(SUB(LOAD(x + i, count - i), less));
            STORE(out + i, MUL(factor, e), count - i);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++, x += columns, out += columns)
        for (int j = 0; j < width; j += WIDTH) {
            FLOATS e = wengert_exp(SUB(LOAD(x + j, width - j), LOAD(y + j, width - j)));
            STORE(out + j, MUL(LOAD(g + j, width - j), e), width - j);
        }
}

/* Sums from the first row on, or from the last if `backward`. */
static TARGET void wengert_strip_cumsum(
        int backward, const char* from, char* to, int64_t count, int64_t columns, int64_t width) {
    int64_t step = backward ? -columns : columns, start = backward ? (count - 1) * columns : 0;
    const wengert_real* x = (const wengert_real*)from + start;
    wengert_real* y = (wengert_real*)to + start;
    if (columns == 1) {
        double sum = 0;
        for (int64_t i = 0; i < count; i++, x += step, y += step) *y = (wengert_real)(sum += *x);
        return;
    }
    double total[STRIP] = {0};
    for (int64_t i = 0; i < count; i++, x += step, y += step)
        for (int j = 0; j < width; j++) y[j] = (wengert_real)(total[j] += x[j]);
}

/* Where the largest element is, or the least if the sign is -1, and what it is; NaN comes first. */
static TARGET void wengert_strip_arg(
        int sign, const char* from, char* values, int64_t* to, int64_t count, int64_t columns,
        int64_t width) {
    const wengert_real* x = (const wengert_real*)from;
    wengert_real* found = (wengert_real*)values;
    if (columns == 1) {
        wengert_real best = (wengert_real)wengert_row_extreme(x, count, (wengert_real)sign);
        int64_t i = 0;
        if (best != best) while (x[i] == x[i]) i++;
        else while (x[i] != best) i++;
        *to = i;
        if (found) *found = x[i];
        return;
    }
    wengert_real best[STRIP];
    int32_t at[STRIP];
    for (int j = 0; j < width; j++) { best[j] = x[j]; at[j] = 0; }
    for (int64_t i = 1; i < count; i++) {
        const wengert_real* row = x + i * columns;
        for (int j = 0; j < width; j++) {
            int better = (sign > 0 ? row[j] > best[j] : row[j] < best[j]) | (row[j] != row[j]);
            better &= best[j] == best[j];
            at[j] = better ? (int32_t)i : at[j];
            best[j] = better ? row[j] : best[j];
        }
    }
    for (int j = 0; j < width; j++) to[j] = at[j];
    if (found) for (int j = 0; j < width; j++) found[j] = best[j];
}

/* The gradient of an extremum, in equal parts to the elements that have its value. */
static TARGET void wengert_strip_ties(
        const char* gradient, const char* from, const char* value, char* to, int64_t count,
        int64_t columns, int64_t width) {
    const wengert_real *g = (const wengert_real*)gradient, *x = (const wengert_real*)from;
    const wengert_real* y = (const wengert_real*)value;
    wengert_real *out = (wengert_real*)to, part[STRIP];
    if (columns == 1) {
        int64_t ties = 0;
        wengert_real best = *y;
        for (int64_t i = 0; i < count; i++) ties += x[i] == best;
        wengert_real share = *g / (wengert_real)ties, none = *g * 0 / (wengert_real)ties;
        for (int64_t i = 0; i < count; i++) out[i] = x[i] == best ? share : none;
        return;
    }
    int32_t ties[STRIP] = {0};
    for (int64_t i = 0; i < count; i++)
        for (int j = 0; j < width; j++) ties[j] += x[i * columns + j] == y[j];
    for (int j = 0; j < width; j++) part[j] = g[j] / (wengert_real)ties[j];
    for (int64_t i = 0; i < count; i++, x += columns, out += columns)
        for (int j = 0; j < width; j++) out[j] = x[j] == y[j] ? part[j] : part[j] * 0;
}

/* g * (x / y), and nothing where y is zero, or g * (y / x): gradients of norms and products. */
static TARGET void wengert_strip_ratio(
        int is_norm, const char* gradient, const char* from, const char* value, char* to,
        int64_t count, int64_t columns, int64_t width) {
    const wengert_real *g = (const wengert_real*)gradient, *x = (const wengert_real*)from;
    const wengert_real* y = (const wengert_real*)value;
    wengert_real* out = (wengert_real*)to;
    if (columns == 1) {
        wengert_real factor = *g, total = *y;
        if (!is_norm) for (int64_t i = 0; i < count; i++) out[i] = factor * (total / x[i]);
        else if (total == 0) for (int64_t i = 0; i < count; i++) out[i] = factor * 0;
        else for (int64_t i = 0; i < count; i++) out[i] = factor * (x[i] / total);
        return;
    }
    for (int64_t i = 0; i < count; i++, x += columns, out += columns) {
        if (!is_norm) for (int j = 0; j < width; j++) out[j] = g[j] * (y[j] / x[j]);
        else for (int j = 0; j < width; j++) out[j] = g[j] * (y[j] == 0 ? 0 : x[j] / y[j]);
    }
}

#define WENGERT_STRIPS \
    wengert_strip_spread, wengert_strip_affine, wengert_strip_products, wengert_strip_centred, \
    wengert_strip_softmax, wengert_strip_logsumexp, wengert_strip_softmax_gradient, \
    wengert_strip_shares, wengert_strip_cumsum, wengert_strip_arg, wengert_strip_ties, \
    wengert_strip_ratio
