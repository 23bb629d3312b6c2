/* Sums of n elements that lie at several places, which are added one after the other. */
#include "copying.h"

#define WENGERT_ADD_COPIES(name, real)                                                        \
WENGERT_COPIES static void name(                                                              \
        char* to, const char* from, const int64_t* places, int count, int64_t n) {            \
    for (int64_t begin = 0; begin < n; begin += 1024) {                                       \
        int64_t end = begin + 1024 < n ? begin + 1024 : n;                                    \
        real* total = (real*)to;                                                              \
        const real *a = (const real*)(from + places[0]), *b = (const real*)(from + places[1]);\
        for (int64_t i = begin; i < end; i++) total[i] = a[i] + b[i];                         \
        for (int k = 2; k < count; k++) {                                                     \
            a = (const real*)(from + places[k]);                                              \
            for (int64_t i = begin; i < end; i++) total[i] += a[i];                           \
        }                                                                                     \
    }                                                                                         \
}
WENGERT_ADD_COPIES(wengert_add_copies_4, float)
WENGERT_ADD_COPIES(wengert_add_copies_8, double)
