/* Steps of a table, which are run in chunks of their rows. */
#include <stdint.h>
typedef void (*wengert_kernel)(char** bases, const int64_t* slots, int64_t lo, int64_t hi, int64_t part);
typedef struct {
    wengert_kernel function;
    const int64_t* slots;
    int64_t rows, chunk, parts;
} wengert_step;
typedef struct {
    char** bases;
    const wengert_step* step;
} wengert_job;

static void wengert_chunk(void* data, int64_t part) {
    const wengert_job* job = (const wengert_job*)data;
    const wengert_step* step = job->step;
    int64_t lo = part * step->chunk, hi = lo + step->chunk;
    step->function(job->bases, step->slots, lo, hi < step->rows ? hi : step->rows, part);
}
