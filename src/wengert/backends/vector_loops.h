/* What vector_loops.pyx and the loops for each instruction set know of each other. */
#ifndef WENGERT_VECTOR_LOOPS
#define WENGERT_VECTOR_LOOPS
#include <stdint.h>

/* A loop over n elements of contiguous arrays, with numbers that hold for all of them. */
typedef void (*wengert_loop)(
    const char* const* in, const double* numbers, char* to, int64_t n);

typedef struct {
    const char *key, *roles, *literals;
} wengert_entry;

/* Loops over rows of n elements each, see rows.h. Weights and biases may be missing. */
typedef struct {
    void (*reduce)(int kind, const char* x, double* to, int64_t count, int64_t columns);
    void (*softmax)(const char* x, char* y, int64_t rows, int64_t n);
    void (*log_softmax)(const char* x, char* y, int64_t rows, int64_t n);
    void (*logsumexp)(const char* x, char* y, int64_t rows, int64_t n);
    void (*cumsum)(const char* x, char* y, int64_t rows, int64_t n);
    void (*softmax_gradient)(const char* g, const char* y, char* out, int64_t rows, int64_t n);
    void (*log_softmax_gradient)(const char* g, const char* y, char* out, int64_t rows, int64_t n);
    void (*layer_norm)(const char* x, const char* weight, const char* bias, char* y, char* mean,
                       char* scale, int64_t rows, int64_t n, double eps);
    void (*layer_norm_gradient)(const char* g, const char* x, const char* weight, const char* mean,
                                const char* scale, char* out, int64_t rows, int64_t n);
    void (*layer_norm_weight)(const char* g, const char* x, const char* mean, const char* scale,
                              double* to, int64_t rows, int64_t n);
    /* Loops down columns, see strips.h. */
    void (*spread)(const char* x, const char* mean, double* to, int64_t count, int64_t columns,
                   int64_t width);
    void (*affine)(const char* x, const char* mean, const char* factor, const char* bias, char* to,
                   int64_t count, int64_t columns, int64_t width);
    void (*products)(const char* g, const char* x, const char* mean, double* plain,
                     double* weighted, int64_t count, int64_t columns, int64_t width);
    void (*centred)(const char* g, const char* x, const char* mean, const char* less,
                    const char* factor, const char* slope, char* to, int64_t count, int64_t columns,
                    int64_t width);
    void (*strip_softmax)(int is_log, const char* x, char* y, int64_t count, int64_t columns,
                          int64_t width);
    void (*strip_logsumexp)(const char* x, char* y, int64_t count, int64_t columns, int64_t width);
    void (*strip_softmax_gradient)(int is_log, const char* g, const char* y, char* to,
                                   int64_t count, int64_t columns, int64_t width);
    void (*shares)(const char* g, const char* x, const char* y, char* to, int64_t count,
                   int64_t columns, int64_t width);
    void (*strip_cumsum)(int backward, const char* x, char* y, int64_t count, int64_t columns,
                         int64_t width);
    void (*arg)(int sign, const char* x, char* values, int64_t* to, int64_t count,
                int64_t columns, int64_t width);
    void (*ties)(const char* g, const char* x, const char* y, char* to, int64_t count,
                 int64_t columns, int64_t width);
    void (*ratio)(int is_norm, const char* g, const char* x, const char* y, char* to,
                  int64_t count, int64_t columns, int64_t width);
    /* See products.h. */
    int (*multiply)(const char* a, const char* b, char* to, int64_t m, int64_t k, int64_t n,
                    int64_t a_row, int64_t a_column, int64_t b_row, int64_t b_column, int adds);
    /* See panels.h; NULL where BLAS does as well. */
    void (*panels)(const char* a, const char* b, const char* from, char* to, int64_t m, int64_t k,
                   int64_t n, int64_t a_row, int64_t a_column, int64_t b_row, int64_t b_column,
                   int64_t from_row, int64_t to_row, double factor, double least);
    /* See programs.h. */
    void (*run_program)(const int32_t* code, int length, const double* numbers, int count,
                        char* const* data, int operands, const int32_t* outputs, int results,
                        int64_t n);
} wengert_rows;

enum {
    WENGERT_ADD, WENGERT_SUBTRACT, WENGERT_MULTIPLY, WENGERT_DIVIDE, WENGERT_NEGATE, WENGERT_ROOT,
    WENGERT_SIZE, WENGERT_MAXIMUM
};
enum { WENGERT_SUM, WENGERT_SQUARES, WENGERT_LARGEST, WENGERT_LEAST, WENGERT_PRODUCT };

#define LOOP(place) static TARGET void loop_##place( \
    const char* const* in, const double* numbers, char* to, int64_t n)

#define WENGERT_SETS 3
extern const wengert_entry wengert_entries[];
extern const int wengert_entry_count;
/* By the instruction set, from the best, then by the precision, single before double. */
extern const wengert_loop* const wengert_loops_of[WENGERT_SETS][2];
extern const wengert_rows* const wengert_rows_of[WENGERT_SETS][2];

/* The best instruction set of the processor; the last one is plain C. */
static inline int wengert_instruction_set(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) return 0;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
    return 2;
}
#endif
