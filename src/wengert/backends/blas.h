/* The matrix products of the library that NumPy is linked with, found by name: NumPy's own way to
   them clears every result first and cannot add to one. */
#include <Python.h>
#include <stdint.h>
#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#include <pthread.h>
#define WENGERT_DL 1
#endif

#define WENGERT_GEMM(name, real, integer)                                                     \
typedef void (*name)(int, int, int, integer, integer, integer, real, const real*, integer,    \
                     const real*, integer, real, real*, integer)
WENGERT_GEMM(wengert_sgemm64, float, int64_t);
WENGERT_GEMM(wengert_dgemm64, double, int64_t);
WENGERT_GEMM(wengert_sgemm32, float, int);
WENGERT_GEMM(wengert_dgemm32, double, int);

static void* wengert_found[2] = {0, 0};
static int wengert_wide = 0;
static int (*wengert_blas_threads)(void) = 0;
static void (*wengert_set_blas_threads)(int) = 0;

static int wengert_serves(Py_ssize_t largest) {
    return wengert_wide || largest < INT32_MAX;
}

static int wengert_can_be_alone(void) { return wengert_set_blas_threads != 0; }

#ifdef WENGERT_DL
static pthread_mutex_t wengert_sharing = PTHREAD_MUTEX_INITIALIZER;
static int wengert_sharers = 0;      /* calls whose products our threads share just now */
static int wengert_threads_kept = 0; /* what BLAS is given back after the last of them, or 0 */

/* OpenBLAS ends its threads before a fork, and waits forever if their number is set meanwhile. */
static void wengert_before_fork(void) { pthread_mutex_lock(&wengert_sharing); }

static void wengert_after_fork(void) { pthread_mutex_unlock(&wengert_sharing); }

static void wengert_in_child(void) { /* where the threads of those that share are not */
    pthread_mutex_init(&wengert_sharing, 0);
    wengert_sharers = 0;
}

/* Let BLAS use one thread, while ours share its products; each call is followed by one of
   `wengert_together`. Its own threads would go on spinning for a tenth of a second after every
   product, and give other bits. */
static void wengert_alone(void) {
    pthread_mutex_lock(&wengert_sharing);
    wengert_sharers++;
    const int now = wengert_blas_threads();
    if (now > 1) {
        wengert_threads_kept = now;
        wengert_set_blas_threads(1);
    }
    pthread_mutex_unlock(&wengert_sharing);
}

/* Give BLAS its threads back, unless products of others are still shared or a program has set them
   meanwhile. */
static void wengert_together(void) {
    pthread_mutex_lock(&wengert_sharing);
    if (--wengert_sharers == 0 && wengert_threads_kept) {
        if (wengert_blas_threads() == 1) wengert_set_blas_threads(wengert_threads_kept);
        wengert_threads_kept = 0;
    }
    pthread_mutex_unlock(&wengert_sharing);
}
#else
static void wengert_alone(void) {}
static void wengert_together(void) {}
#endif

static int wengert_find_blas(const char* path) {
#ifdef WENGERT_DL
    static const char* names[][2] = {
        {"scipy_cblas_sgemm64_", "scipy_cblas_dgemm64_"},
        {"cblas_sgemm64_", "cblas_dgemm64_"},
        {"scipy_cblas_sgemm", "scipy_cblas_dgemm"},
        {"cblas_sgemm", "cblas_dgemm"},
    };
    static const char* settings[][2] = {
        {"scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"},
        {"openblas_get_num_threads64_", "openblas_set_num_threads64_"},
        {"scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"},
        {"openblas_get_num_threads", "openblas_set_num_threads"},
    };
    void* handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return 0;
    for (int i = 0; i < 4 && !wengert_set_blas_threads; i++) {
        void* get = dlsym(handle, settings[i][0]);
        void* set = dlsym(handle, settings[i][1]);
        if (get && set) {
            *(void**)&wengert_blas_threads = get;
            *(void**)&wengert_set_blas_threads = set;
            pthread_atfork(wengert_before_fork, wengert_after_fork, wengert_in_child);
        }
    }
    for (int i = 0; i < 4; i++) {
        void* single = dlsym(handle, names[i][0]);
        void* other = dlsym(handle, names[i][1]);
        if (single && other) {
            wengert_found[0] = single;
            wengert_found[1] = other;
            wengert_wide = i < 2;
            return 1;
        }
    }
    dlclose(handle);
#endif
    return 0;
}

#define WENGERT_CALL(type, real, integer)                                                     \
    ((type)wengert_found[sizeof(real) == 8])(                                                 \
        101, turn_a ? 112 : 111, turn_b ? 112 : 111, (integer)m, (integer)n, (integer)k,      \
        (real)factor, (const real*)a, (integer)a_step, (const real*)b, (integer)b_step,       \
        adds ? 1 : 0, (real*)out, (integer)out_step)

static void wengert_gemm(
        int is_double, int turn_a, int turn_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
        double factor, const void* a, Py_ssize_t a_step, const void* b, Py_ssize_t b_step, int adds,
        void* out, Py_ssize_t out_step) {
    if (wengert_wide) {
        if (is_double) WENGERT_CALL(wengert_dgemm64, double, int64_t);
        else WENGERT_CALL(wengert_sgemm64, float, int64_t);
    } else {
        if (is_double) WENGERT_CALL(wengert_dgemm32, double, int);
        else WENGERT_CALL(wengert_sgemm32, float, int);
    }
}
