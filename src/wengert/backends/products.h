/* Products of small matrices, with the instructions of vectors.h: tiles of a result stay in registers,
   and no operand is brought into another order unless its columns lie apart. */
#define WENGERT_PACKED 2048 /* elements of a matrix that is copied to have its columns side by side */

#if WENGERT_SET == 0
#define WENGERT_STEP(a, b, c) ADD(MUL(a, b), c) /* the C library's fma is a call */
#else
#define WENGERT_STEP(a, b, c) FMA(a, b, c)
#endif

/* Without masks, parts of vectors are read element by element: the second factor gets whole ones. */
#if WENGERT_SET == 3
#define WENGERT_RIGHT(p, left) OF(loadu)(p)
#else
#define WENGERT_RIGHT(p, left) LOAD(p, left)
#endif

typedef struct {
    int64_t k, n, a_row, a_column, b_row;
    int adds;
} wengert_factors;

static inline __attribute__((always_inline)) TARGET void wengert_tile(
        const wengert_factors* f, const wengert_real* a, const wengert_real* b, wengert_real* out,
        int64_t left, const int rows, const int vectors) {
    FLOATS total[4][2], right[2];
    const int64_t k = f->k, n = f->n, a_row = f->a_row, a_column = f->a_column, b_row = f->b_row;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            total[r][v] = f->adds ? LOAD(out + r * n + v * WIDTH, left - v * WIDTH) : CONSTANT(0);
    for (int64_t p = 0; p < k; p++, a += a_column, b += b_row) {
        for (int v = 0; v < vectors; v++) right[v] = WENGERT_RIGHT(b + v * WIDTH, left - v * WIDTH);
        for (int r = 0; r < rows; r++) {
            FLOATS s = CONSTANT(a[r * a_row]);
            for (int v = 0; v < vectors; v++) total[r][v] = WENGERT_STEP(s, right[v], total[r][v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            STORE(out + r * n + v * WIDTH, total[r][v], left - v * WIDTH);
}

/* out = a @ b, or out += a @ b, of contiguous results; 0 if that is left to others. Strides are in
   elements. Each element is the sum of its products in order, whatever the tiles are. */
static TARGET int wengert_multiply(
        const char* first, const char* second, char* to, int64_t m, int64_t k, int64_t n,
        int64_t a_row, int64_t a_column, int64_t b_row, int64_t b_column, int adds) {
    const wengert_real *a = (const wengert_real*)first, *b = (const wengert_real*)second;
    wengert_real *out = (wengert_real*)to, packed[WENGERT_PACKED];
    const int whole = WENGERT_SET == 3 && n % WIDTH;
    if ((b_column != 1 && n > 1) || whole) {
        const int64_t wide = whole ? (n + WIDTH - 1) / WIDTH * WIDTH : n;
        if (k * wide > WENGERT_PACKED) return 0;
        for (int64_t p = 0; p < k; p++) {
            wengert_real* row = packed + p * wide;
            for (int64_t j = 0; j < n; j++) row[j] = b[p * b_row + j * b_column];
            for (int64_t j = n; j < wide; j++) row[j] = 0;
        }
        b = packed;
        b_row = wide;
    }
    const wengert_factors f = {k, n, a_row, a_column, b_row, adds};
    for (int64_t j = 0; j < n;) {
        const int64_t left = n - j;
        const int two = left > WIDTH;
        const wengert_real* top = a;
        wengert_real* o = out + j;
        int64_t i = 0;
        if (two) {
            for (; i + 4 <= m; i += 4, top += 4 * a_row, o += 4 * n)
                wengert_tile(&f, top, b + j, o, left, 4, 2);
            for (; i < m; i++, top += a_row, o += n) wengert_tile(&f, top, b + j, o, left, 1, 2);
        } else {
            for (; i + 4 <= m; i += 4, top += 4 * a_row, o += 4 * n)
                wengert_tile(&f, top, b + j, o, left, 4, 1);
            for (; i < m; i++, top += a_row, o += n) wengert_tile(&f, top, b + j, o, left, 1, 1);
        }
        j += two ? 2 * WIDTH : WIDTH;
    }
    return 1;
}
