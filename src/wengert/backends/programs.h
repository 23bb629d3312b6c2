/* Short programs of elementwise operations, run block by block: what is computed between stays in the
   cache. Registers are the operands, then numbers, then results of instructions, which are four
   integers each: the operation, the register of the result, and those of the operands. */
#define PROGRAM_BLOCK 256
#define MOST_REGISTERS 48

static TARGET void wengert_run_program(
        const int32_t* code, int length, const double* numbers, int count, char* const* data,
        int operands, const int32_t* outputs, int results, int64_t n) {
    static const int64_t size = sizeof(wengert_real);
    wengert_real space[MOST_REGISTERS][PROGRAM_BLOCK];
    const wengert_real* at[MOST_REGISTERS];
    for (int i = 0; i < MOST_REGISTERS; i++) at[i] = space[i];
    for (int i = 0; i < count; i++)
        for (int j = 0; j < PROGRAM_BLOCK; j++) space[operands + i][j] = (wengert_real)numbers[i];
    for (int64_t begin = 0; begin < n; begin += PROGRAM_BLOCK) {
        int m = n - begin < PROGRAM_BLOCK ? (int)(n - begin) : PROGRAM_BLOCK;
        for (int i = 0; i < operands; i++)
            at[i] = (const wengert_real*)(data[i] + begin * size);
        for (const int32_t* step = code; step < code + 4 * length; step += 4) {
            wengert_real* to = space[step[1]];
            const wengert_real *a = at[step[2]], *b = at[step[3]];
            switch (step[0]) {
            case WENGERT_ADD: for (int j = 0; j < m; j++) to[j] = a[j] + b[j]; break;
            case WENGERT_SUBTRACT: for (int j = 0; j < m; j++) to[j] = a[j] - b[j]; break;
            case WENGERT_MULTIPLY: for (int j = 0; j < m; j++) to[j] = a[j] * b[j]; break;
            case WENGERT_DIVIDE: for (int j = 0; j < m; j++) to[j] = a[j] / b[j]; break;
            case WENGERT_NEGATE: for (int j = 0; j < m; j++) to[j] = -a[j]; break;
            case WENGERT_ROOT:
                for (int j = 0; j < m; j += WIDTH) OF(storeu)(to + j, SQRT(LOAD(a + j, m - j)));
                break;
            case WENGERT_SIZE: for (int j = 0; j < m; j++) to[j] = a[j] < 0 ? -a[j] : a[j] + 0; break;
            default:
                for (int j = 0; j < m; j++) to[j] = (a[j] > b[j]) | (a[j] != a[j]) ? a[j] : b[j];
            }
        }
        /* Only now, as results may lie where operands do. */
        for (int i = 0; i < results; i++)
            if (outputs[2 * i] >= operands)
                memcpy(data[outputs[2 * i + 1]] + begin * size, at[outputs[2 * i]],
                       (size_t)(m * size));
    }
}
