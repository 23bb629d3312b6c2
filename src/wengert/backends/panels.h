/* Products of matrices of middle size, with the instructions of vectors.h. The second factor is
   copied in panels as wide as a tile of the result, which reads it in order; the first is read where
   it lies. BLAS copies both, which pays for large matrices only. */
#if WENGERT_SET != 4 /* BLAS is as fast with shorter vectors */
#define WENGERT_PANELS 0
#else
#define WENGERT_TALL 8 /* rows of a tile, whose sums stay in registers */
#define WENGERT_WIDE 3 /* its vectors */
#define WENGERT_DEEP (1536 / (int)sizeof(wengert_real)) /* rows of a panel, which stays in the cache */

typedef struct {
    int64_t k, a_row, a_column, from_row, to_row, columns;
    wengert_real factor, least;
} wengert_panel;

static inline __attribute__((always_inline)) TARGET void wengert_panel_tile(
        const wengert_panel* f, const wengert_real* a, const wengert_real* b,
        const wengert_real* from, wengert_real* to, const int rows, const int vectors) {
    FLOATS total[WENGERT_TALL][WENGERT_WIDE], right[WENGERT_WIDE];
    const int64_t k = f->k, a_row = f->a_row, a_column = f->a_column;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            total[r][v] = CONSTANT(0);
        }
    for (int64_t p = 0; p < k; p++, a += a_column, b += vectors * WIDTH) {
        for (int v = 0; v < vectors; v++) right[v] = OF(loadu)(b + v * WIDTH);
        for (int r = 0; r < rows; r++) {
            FLOATS s = CONSTANT(a[r * a_row]);
            for (int v = 0; v < vectors; v++) total[r][v] = FMA(s, right[v], total[r][v]);
        }
    }
    const FLOATS factor = CONSTANT(f->factor), least = CONSTANT(f->least);
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            const int64_t place = v * WIDTH, left = f->columns - place;
            FLOATS sum = MUL(factor, total[r][v]);
            if (from) sum = FMA(factor, total[r][v], LOAD(from + r * f->from_row + place, left));
            STORE(to + r * f->to_row + place, MAXIMUM(least, sum), left); /* which passes NaN on */
        }
}

#define WENGERT_ROW_CASE(rows, vectors) \
    case rows: wengert_panel_tile(f, a, b, from, to, rows, vectors); break;
#define WENGERT_PANEL_TILES(vectors) \
static TARGET void wengert_panel_tiles_##vectors( \
        const wengert_panel* f, const wengert_real* a, const wengert_real* b, \
        const wengert_real* from, wengert_real* to, int rows) { \
    switch (rows) { \
        WENGERT_ROW_CASE(1, vectors) WENGERT_ROW_CASE(2, vectors) WENGERT_ROW_CASE(3, vectors) \
        WENGERT_ROW_CASE(4, vectors) WENGERT_ROW_CASE(5, vectors) WENGERT_ROW_CASE(6, vectors) \
        WENGERT_ROW_CASE(7, vectors) WENGERT_ROW_CASE(8, vectors) \
    } \
}
WENGERT_PANEL_TILES(1)
WENGERT_PANEL_TILES(2)
WENGERT_PANEL_TILES(3)

/* A few rows of a matrix as columns: as many as fit into the smallest vectors. Returns how many. */
static inline TARGET int64_t wengert_turned_columns(
        const wengert_real* from, int64_t step, int64_t k, wengert_real* to, int64_t width) {
    int64_t p = 0;
#if defined(WENGERT_F32)
    for (; p + 4 <= k; p += 4, from += 4, to += 4 * width) {
        __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + step);
        __m128 c = _mm_loadu_ps(from + 2 * step), d = _mm_loadu_ps(from + 3 * step);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        _mm_storeu_ps(to, a);
        _mm_storeu_ps(to + width, b);
        _mm_storeu_ps(to + 2 * width, c);
        _mm_storeu_ps(to + 3 * width, d);
    }
    for (; p < k; p++, from++, to += width)
        for (int i = 0; i < 4; i++) to[i] = from[i * step];
    return 4;
#else
    for (; p + 2 <= k; p += 2, from += 2, to += 2 * width) {
        __m128d a = _mm_loadu_pd(from), b = _mm_loadu_pd(from + step);
        _mm_storeu_pd(to, _mm_unpacklo_pd(a, b));
        _mm_storeu_pd(to + width, _mm_unpackhi_pd(a, b));
    }
    for (; p < k; p++, from++, to += width)
        for (int i = 0; i < 2; i++) to[i] = from[i * step];
    return 2;
#endif
}

/* Some columns of a matrix, row after row, filled up with zeros to whole vectors. */
static TARGET void wengert_pack(
        const wengert_real* b, int64_t b_row, int64_t b_column, int64_t k, int64_t columns,
        int64_t width, wengert_real* to) {
    const int64_t group = 16 / (int)sizeof(wengert_real);
    int64_t j = 0;
    if (b_column == 1) {
        for (int64_t p = 0; p < k; p++)
            for (j = 0; j < columns; j += WIDTH)
                OF(storeu)(to + p * width + j, columns - j >= WIDTH
                    ? OF(loadu)(b + p * b_row + j) : LOAD(b + p * b_row + j, columns - j));
        return;
    }
    if (b_row == 1)
        while (j + group <= columns)
            j += wengert_turned_columns(b + j * b_column, b_column, k, to + j, width);
    for (; j < width; j++)
        for (int64_t p = 0; p < k; p++)
            to[p * width + j] = j < columns ? b[p * b_row + j * b_column] : 0;
}

/* to = from + factor * (a @ b), where no element is less than `least`; without `from` if that is NULL.
   Strides are in elements; columns of `from` and `to` lie side by side, and both may be the same; k is
   not zero. Each element is the sum of sums of WENGERT_DEEP products in order, so that results do not
   depend on how a product is split. */
static TARGET void wengert_panels(
        const char* first, const char* second, const char* from, char* to, int64_t m, int64_t k,
        int64_t n, int64_t a_row, int64_t a_column, int64_t b_row, int64_t b_column,
        int64_t from_row, int64_t to_row, double factor, double least) {
    wengert_real panel[WENGERT_DEEP * WENGERT_WIDE * WIDTH] __attribute__((aligned(64)));
    const wengert_real *a = (const wengert_real*)first, *b = (const wengert_real*)second;
    wengert_real* out = (wengert_real*)to;
    const wengert_real* begin = (const wengert_real*)from;
    wengert_panel f = {0, a_row, a_column, from_row, to_row, 0, (wengert_real)factor, 0};
    for (int64_t p = 0; p < k; p += f.k, begin = out, f.from_row = to_row) {
        f.k = k - p < WENGERT_DEEP ? k - p : WENGERT_DEEP;
        f.least = p + f.k < k ? -INFINITY : (wengert_real)least;
        int64_t vectors = (n + WIDTH - 1) / WIDTH;
        for (int64_t j = 0; j < n;) {
            /* what is left in panels of about the same width */
            const int64_t panels = (vectors + WENGERT_WIDE - 1) / WENGERT_WIDE;
            const int64_t wide = (vectors + panels - 1) / panels;
            f.columns = n - j < wide * WIDTH ? n - j : wide * WIDTH;
            wengert_pack(
                b + p * b_row + j * b_column, b_row, b_column, f.k, f.columns, wide * WIDTH, panel);
            for (int64_t i = 0; i < m; i += WENGERT_TALL) {
                const int rows = m - i < WENGERT_TALL ? (int)(m - i) : WENGERT_TALL;
                const wengert_real* top = a + i * a_row + p * a_column;
                const wengert_real* start = begin ? begin + i * f.from_row + j : 0;
                wengert_real* o = out + i * to_row + j;
                switch (wide) {
                    case 1: wengert_panel_tiles_1(&f, top, panel, start, o, rows); break;
                    case 2: wengert_panel_tiles_2(&f, top, panel, start, o, rows); break;
                    default: wengert_panel_tiles_3(&f, top, panel, start, o, rows);
                }
            }
            j += wide * WIDTH;
            vectors -= wide;
        }
    }
}
#define WENGERT_PANELS wengert_panels
#endif
