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

#define WENGERT_ROWS { \
    wengert_softmax, wengert_log_softmax, wengert_logsumexp, wengert_softmax_gradient, \
    wengert_log_softmax_gradient}
