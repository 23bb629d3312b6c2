/* The Mersenne Twister MT19937 and the conversions of its words, as PyTorch makes them. */
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define WENGERT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WENGERT_CLONES
#endif

#define WENGERT_WORDS 624
#define WENGERT_SHIFT 397

typedef struct {
    uint32_t key[WENGERT_WORDS];
    uint32_t drawn[WENGERT_WORDS]; /* the key, tempered: what is handed out */
    int next;                      /* the place of the next word; WENGERT_WORDS if none is left */
    int fresh;                     /* seeded, and nothing drawn yet */
    int has_normal;
    double normal; /* the second of a pair of normal numbers, for the next call */
} wengert_twister;

WENGERT_CLONES
static void wengert_temper(wengert_twister* self) {
    for (int i = 0; i < WENGERT_WORDS; i++) {
        uint32_t y = self->key[i];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        self->drawn[i] = y ^ (y >> 18);
    }
}

static void wengert_seed(wengert_twister* self, uint32_t seed) {
    self->key[0] = seed;
    for (int i = 1; i < WENGERT_WORDS; i++) {
        uint32_t before = self->key[i - 1];
        self->key[i] = 1812433253u * (before ^ (before >> 30)) + (uint32_t)i;
    }
    self->next = WENGERT_WORDS;
    self->fresh = 1;
    self->has_normal = 0;
}

static inline uint32_t wengert_twist(uint32_t high, uint32_t low) {
    uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return (y >> 1) ^ ((0u - (low & 1u)) & 0x9908b0dfu);
}

/* New words in three parts, in each of which nothing depends on what it writes itself. */
WENGERT_CLONES
static void wengert_refill(wengert_twister* self) {
    uint32_t* key = self->key;
    const int part = WENGERT_WORDS - WENGERT_SHIFT;
    uint32_t old[WENGERT_WORDS + 1];
    memcpy(old, key, sizeof(self->key));
    for (int i = 0; i < part; i++) key[i] = old[i + WENGERT_SHIFT] ^ wengert_twist(old[i], old[i + 1]);
    for (int i = part; i < 2 * part; i++) key[i] = key[i - part] ^ wengert_twist(old[i], old[i + 1]);
    old[WENGERT_WORDS] = key[0];
    for (int i = 2 * part; i < WENGERT_WORDS; i++)
        key[i] = key[i - part] ^ wengert_twist(old[i], old[i + 1]);
    wengert_temper(self);
    self->next = 0;
    self->fresh = 0;
}

static inline uint32_t wengert_word(wengert_twister* self) {
    if (self->next == WENGERT_WORDS) wengert_refill(self);
    return self->drawn[self->next++];
}

static inline uint64_t wengert_wide_word(wengert_twister* self) {
    uint64_t high = wengert_word(self);
    return (high << 32) | wengert_word(self);
}

static inline double wengert_unit(wengert_twister* self) {
    return (double)(wengert_wide_word(self) & ((1ull << 53) - 1)) * 0x1p-53;
}

/* As many words as are left, and at most `count`; they stay where they are. */
static inline const uint32_t* wengert_some_words(
        wengert_twister* self, Py_ssize_t count, Py_ssize_t* number) {
    if (self->next == WENGERT_WORDS) wengert_refill(self);
    const uint32_t* words = self->drawn + self->next;
    Py_ssize_t left = WENGERT_WORDS - self->next;
    *number = left < count ? left : count;
    self->next += (int)*number;
    return words;
}

static void wengert_words(wengert_twister* self, uint32_t* out, Py_ssize_t n) {
    while (n > 0) {
        Py_ssize_t some;
        const uint32_t* words = wengert_some_words(self, n, &some);
        memcpy(out, words, (size_t)some * sizeof(uint32_t));
        out += some;
        n -= some;
    }
}

WENGERT_CLONES
static void wengert_convert_float(const uint32_t* words, float* out, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) out[i] = (float)(int32_t)(words[i] & 0xffffffu) * 0x1p-24f;
}

static void wengert_unit_float(wengert_twister* self, float* out, Py_ssize_t n) {
    while (n > 0) {
        Py_ssize_t some;
        const uint32_t* words = wengert_some_words(self, n, &some);
        wengert_convert_float(words, out, some);
        out += some;
        n -= some;
    }
}

WENGERT_CLONES
static void wengert_convert_double(const uint32_t* words, double* out, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) {
        uint64_t wide = ((uint64_t)(words[2 * i] & 0x1fffffu) << 32) | words[2 * i + 1];
        out[i] = (double)(int64_t)wide * 0x1p-53;
    }
}

static void wengert_unit_double(wengert_twister* self, double* out, Py_ssize_t n) {
    while (n > 0) {
        Py_ssize_t some = (WENGERT_WORDS - self->next) / 2;
        if (some == 0) { /* a refill lies ahead, perhaps between two halves */
            *out++ = wengert_unit(self);
            n--;
            continue;
        }
        some = some < n ? some : n;
        wengert_convert_double(self->drawn + self->next, out, some);
        self->next += (int)(2 * some);
        out += some;
        n -= some;
    }
}

static void wengert_flags(wengert_twister* self, uint8_t* out, Py_ssize_t n, double p) {
    double units[256];
    while (n > 0) {
        Py_ssize_t some = n < 256 ? n : 256;
        wengert_unit_double(self, units, some);
        for (Py_ssize_t i = 0; i < some; i++) out[i] = units[i] < p;
        out += some;
        n -= some;
    }
}

static void wengert_remainders(
        wengert_twister* self, int64_t* out, Py_ssize_t n, uint64_t range, int64_t base, int wide) {
    if (wide) { /* a range of 0 stands for 2^64 */
        for (Py_ssize_t i = 0; i < n; i++) {
            uint64_t word = wengert_wide_word(self);
            out[i] = (int64_t)((range ? word % range : word) + (uint64_t)base);
        }
        return;
    }
    uint32_t narrow = (uint32_t)range;
    for (Py_ssize_t i = 0; i < n; i++)
        out[i] = (int64_t)((uint64_t)(wengert_word(self) % narrow) + (uint64_t)base);
}

static void wengert_permutation(wengert_twister* self, int64_t* out, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) out[i] = i;
    if ((uint64_t)n < (1ull << 32)) {
        for (Py_ssize_t i = 0; i < n - 1; i++) {
            Py_ssize_t other = i + (Py_ssize_t)(wengert_word(self) % (uint32_t)(n - i));
            int64_t kept = out[i];
            out[i] = out[other];
            out[other] = kept;
        }
        return;
    }
    for (Py_ssize_t i = 0; i < n - 1; i++) {
        Py_ssize_t other = i + (Py_ssize_t)(wengert_wide_word(self) % (uint64_t)(n - i));
        int64_t kept = out[i];
        out[i] = out[other];
        out[other] = kept;
    }
}

static void wengert_exponential(wengert_twister* self, double* out, Py_ssize_t n, double factor) {
    wengert_unit_double(self, out, n);
    for (Py_ssize_t i = 0; i < n; i++) out[i] = factor * log1p(-out[i]);
}

/* Normal numbers one by one, in pairs of which the second waits in the twister. */
static void wengert_normals(
        wengert_twister* self, double* out, Py_ssize_t n, double mean, double std) {
    for (Py_ssize_t i = 0; i < n; i++) {
        double value;
        if (self->has_normal) {
            value = self->normal;
            self->has_normal = 0;
        } else {
            double angle = 6.283185307179586 * wengert_unit(self);
            double radius = sqrt(-2.0 * log1p(-wengert_unit(self)));
            self->normal = radius * sin(angle);
            self->has_normal = 1;
            value = radius * cos(angle);
        }
        out[i] = fma(value, std, mean);
    }
}

static void wengert_block_double(double* u, double mean, double std) {
    for (int j = 0; j < 8; j++) {
        double radius = sqrt(-2.0 * log(1.0 - u[j]));
        double angle = 6.283185307179586 * u[j + 8];
        u[j] = fma(radius * cos(angle), std, mean);
        u[j + 8] = fma(radius * sin(angle), std, mean);
    }
}

/* Blocks of 16 uniform floats become normal ones: logarithm, sine and cosine by the polynomials of
   the Cephes library. Each product that is added to something is not rounded before: by the
   processor where it can do that, else in double precision. */
#if defined(__x86_64__) && defined(__GNUC__)
#define WENGERT_FUSED_TARGET __attribute__((target("avx2,fma")))
#define WENGERT_HAS_FUSED() (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#elif defined(__aarch64__) && defined(__GNUC__)
#define WENGERT_FUSED_TARGET
#define WENGERT_HAS_FUSED() 1
#else
#define WENGERT_HAS_FUSED() 0
#endif

#define WENGERT_IN_DOUBLE(a, b, c) ((float)((double)(a) * (double)(b) + (double)(c)))

#define WENGERT_CHUNK 32
#define WENGERT_ROOT_OF_HALF 0x3f3504f3 /* the bits of the float */

#define WENGERT_PAIRS(name, FMA)                                                              \
static void name(float* first, float* second, Py_ssize_t n, float mean, float std) {          \
    float x[8 * WENGERT_CHUNK], e[8 * WENGERT_CHUNK], small[8 * WENGERT_CHUNK];               \
    int32_t bits[8 * WENGERT_CHUNK];                                                          \
    for (Py_ssize_t i = 0; i < n; i++) x[i] = 1.0f - first[i];                                \
    memcpy(bits, x, (size_t)n * sizeof(float));                                               \
    for (Py_ssize_t i = 0; i < n; i++) {                                                      \
        int32_t exponent = (bits[i] >> 23) - 126;                                             \
        bits[i] = (bits[i] & 0x007fffff) | 0x3f000000;                                        \
        int32_t below = (int32_t)((uint32_t)(bits[i] - WENGERT_ROOT_OF_HALF) >> 31);          \
        e[i] = (float)(exponent - below);                                                     \
        small[i] = (float)below;                                                              \
    }                                                                                         \
    memcpy(x, bits, (size_t)n * sizeof(float));                                               \
    for (Py_ssize_t i = 0; i < n; i++) {                                                      \
        float m = x[i], k = e[i], r = (m - 1.0f) + m * small[i], z = r * r;                   \
        float y = FMA(7.0376836292e-2f, r, -1.1514610310e-1f);                                \
        y = FMA(y, r, 1.1676998740e-1f);                                                      \
        y = FMA(y, r, -1.2420140846e-1f);                                                     \
        y = FMA(y, r, 1.4249322787e-1f);                                                      \
        y = FMA(y, r, -1.6668057665e-1f);                                                     \
        y = FMA(y, r, 2.0000714765e-1f);                                                      \
        y = FMA(y, r, -2.4999993993e-1f);                                                     \
        y = FMA(y, r, 3.3333331174e-1f);                                                      \
        y = FMA(y * r, z, k * -2.12194440e-4f) - 0.5f * z;                                    \
        x[i] = sqrtf(-2.0f * FMA(k, 0.693359375f, r + y));                                    \
    }                                                                                         \
    for (Py_ssize_t i = 0; i < n; i++) {                                                      \
        float angle = 6.283185307179586f * second[i];                                         \
        int32_t octant = ((int32_t)(angle * 1.27323954473516f) + 1) & ~1;                     \
        float turns = -(float)octant;                                                         \
        float a = FMA(turns, 0.78515625f, angle);                                             \
        a = FMA(turns, 2.4187564849853515625e-4f, a);                                         \
        a = FMA(turns, 3.77489497744594108e-8f, a);                                           \
        float w = a * a;                                                                      \
        float c = FMA(2.443315711809948e-5f, w, -1.388731625493765e-3f);                      \
        c = FMA(c, w, 4.166664568298827e-2f);                                                 \
        c = FMA(c * w, w, -0.5f * w) + 1.0f;                                                  \
        float s = FMA(-1.9515295891e-4f, w, 8.3321608736e-3f);                                \
        s = FMA(s, w, -1.6666654611e-1f);                                                     \
        s = FMA(s * w, a, a);                                                                 \
        float swap = (float)((octant & 2) / 2), keep = 1.0f - swap;                           \
        float sine = c * swap + s * keep, cosine = s * swap + c * keep;                       \
        float up = (float)(1 - (octant & 4) / 2), right = (float)(((octant - 2) & 4) / 2 - 1);\
        first[i] = FMA(x[i] * (cosine * right), std, mean);                                   \
        second[i] = FMA(x[i] * (sine * up), std, mean);                                       \
    }                                                                                         \
}

WENGERT_PAIRS(wengert_pairs_in_double, WENGERT_IN_DOUBLE)
#ifdef WENGERT_FUSED_TARGET
WENGERT_FUSED_TARGET WENGERT_PAIRS(wengert_pairs_fused, __builtin_fmaf)
#endif

static void wengert_blocks(float* u, Py_ssize_t blocks, float mean, float std) {
    float first[8 * WENGERT_CHUNK], second[8 * WENGERT_CHUNK];
    for (Py_ssize_t done = 0; done < blocks; done += WENGERT_CHUNK) {
        Py_ssize_t some = blocks - done < WENGERT_CHUNK ? blocks - done : WENGERT_CHUNK;
        float* from = u + 16 * done;
        for (Py_ssize_t k = 0; k < some; k++) {
            memcpy(first + 8 * k, from + 16 * k, 8 * sizeof(float));
            memcpy(second + 8 * k, from + 16 * k + 8, 8 * sizeof(float));
        }
#ifdef WENGERT_FUSED_TARGET
        if (WENGERT_HAS_FUSED())
            wengert_pairs_fused(first, second, 8 * some, mean, std);
        else
#endif
            wengert_pairs_in_double(first, second, 8 * some, mean, std);
        for (Py_ssize_t k = 0; k < some; k++) {
            memcpy(from + 16 * k, first + 8 * k, 8 * sizeof(float));
            memcpy(from + 16 * k + 8, second + 8 * k, 8 * sizeof(float));
        }
    }
}

/* A rest that is no whole block is drawn anew, together with the end of the block before. */
static void wengert_normal_float(
        wengert_twister* self, float* out, Py_ssize_t n, float mean, float std) {
    wengert_unit_float(self, out, n);
    wengert_blocks(out, n / 16, mean, std);
    if (n % 16) {
        wengert_unit_float(self, out + n - 16, 16);
        wengert_blocks(out + n - 16, 1, mean, std);
    }
}

static void wengert_normal_double(
        wengert_twister* self, double* out, Py_ssize_t n, double mean, double std) {
    wengert_unit_double(self, out, n);
    for (Py_ssize_t i = 0; i + 16 <= n; i += 16) wengert_block_double(out + i, mean, std);
    if (n % 16) {
        wengert_unit_double(self, out + n - 16, 16);
        wengert_block_double(out + n - 16, mean, std);
    }
}

/* Scaling to [low, high); what is rounded up to `high` becomes `low`. */
WENGERT_CLONES
static void wengert_scale_float(float* out, Py_ssize_t n, float low, float high) {
    float range = high - low;
    for (Py_ssize_t i = 0; i < n; i++) {
        float value = WENGERT_IN_DOUBLE(out[i], range, low);
        out[i] = value == high ? low : value;
    }
}

WENGERT_CLONES
static void wengert_scale_double(double* out, Py_ssize_t n, double low, double high) {
    double range = high - low;
    for (Py_ssize_t i = 0; i < n; i++) {
        double value = fma(out[i], range, low);
        out[i] = value == high ? low : value;
    }
}
