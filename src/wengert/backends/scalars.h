/* What vectors.h has for instruction sets, in plain C for one element at a time: for compilers without
   vector types and processors without the instructions. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define TARGET
#define TRUTHS int
#define WIDTH 1
#define OF(name) wengert_one_##name
#if defined(WENGERT_F32)
typedef float wengert_real;
#define INTEGERS int32_t
#define UNSIGNED uint32_t
#define C_LIBRARY(name) name##f
/* A product of floats is exact in double precision. */
#define FMA(a, b, c) ((float)((double)(a) * (b) + (c)))
#else
typedef double wengert_real;
#define INTEGERS int64_t
#define UNSIGNED uint64_t
#define C_LIBRARY(name) name
#define FMA(a, b, c) fma(a, b, c)
#endif
#define FLOATS wengert_real

static inline FLOATS wengert_one_loadu(const wengert_real* p) { return *p; }
static inline void wengert_one_storeu(wengert_real* p, FLOATS v) { *p = v; }
static inline INTEGERS wengert_bits(FLOATS v) { INTEGERS i; memcpy(&i, &v, sizeof v); return i; }
static inline FLOATS wengert_from_bits(INTEGERS i) { FLOATS v; memcpy(&v, &i, sizeof v); return v; }
/* As the instructions do, the least integer for what is no integer of the type. */
static inline INTEGERS wengert_truncated(FLOATS v) {
    const FLOATS most = (FLOATS)((UNSIGNED)1 << (8 * sizeof(INTEGERS) - 1));
    return v > -most && v < most ? (INTEGERS)v : (INTEGERS)((UNSIGNED)1 << (8 * sizeof(INTEGERS) - 1));
}

#define LOAD(p, k) (*(p))
#define STORE(p, v, k) (*(p) = (v))
#define LOAD_TRUTHS(p, k) (*(p) != 0)
#define CONSTANT(x) ((FLOATS)(x))
#define INTEGER(x) ((INTEGERS)(x))
#define TRUTH(x) ((x) != 0)
#define TRUTHS_BITS(m) ((unsigned)(m))
#define TRUTHS_AND(a, b) ((a) & (b))
#define TRUTHS_OR(a, b) ((a) | (b))
#define TRUTHS_XOR(a, b) ((a) ^ (b))
#define TRUTHS_NE(a, b) ((a) ^ (b))
#define TRUTHS_EQ(a, b) ((a) == (b))
#define TRUTHS_SELECT(m, a, b) ((m) ? (a) : (b))
#define AS_INTEGERS(a) wengert_bits(a)
#define AS_FLOATS(a) wengert_from_bits(a)
#define TO_INTEGERS(a) wengert_truncated(a)
#define TO_FLOATS(a) ((FLOATS)(a))
#define NEG(a) (-(a))
#define ABS(a) C_LIBRARY(fabs)(a)
#define COPYSIGN(a, b) C_LIBRARY(copysign)(a, b)
#define RINT(a) C_LIBRARY(rint)(a)
#define FLOOR(a) C_LIBRARY(floor)(a)
#define CEIL(a) C_LIBRARY(ceil)(a)
#define TRUNC(a) C_LIBRARY(trunc)(a)
#define SQRT(a) C_LIBRARY(sqrt)(a)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define MAXIMUM(a, b) ((a) > (b) ? (a) : (b))
#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM_OR_NAN(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define MINIMUM_OR_NAN(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define GT(a, b) ((a) > (b))
#define GE(a, b) ((a) >= (b))
#define EQ(a, b) ((a) == (b))
#define NE(a, b) ((a) != (b))
#define UNO(a, b) (((a) != (a)) | ((b) != (b)))
#define SELECT(m, a, b) ((m) ? (a) : (b))
#define INTEGERS_SELECT(m, a, b) ((m) ? (a) : (b))
#define INTEGERS_AND(a, b) ((a) & (b))
#define INTEGERS_OR(a, b) ((a) | (b))
#define INTEGERS_XOR(a, b) ((a) ^ (b))
#define INTEGERS_ADD(a, b) ((INTEGERS)((UNSIGNED)(a) + (UNSIGNED)(b)))
#define INTEGERS_SUB(a, b) ((INTEGERS)((UNSIGNED)(a) - (UNSIGNED)(b)))
#define INTEGERS_SHL(a, n) ((INTEGERS)((UNSIGNED)(a) << (n)))
#define INTEGERS_SHR(a, n) ((INTEGERS)((UNSIGNED)(a) >> (n)))
#define INTEGERS_SAR(a, n) ((a) >> (n))
#define INTEGERS_EQ(a, b) ((a) == (b))
#define INTEGERS_NE(a, b) ((a) != (b))
#define INTEGERS_LT(a, b) ((a) < (b))
#define INTEGERS_LE(a, b) ((a) <= (b))
#define INTEGERS_GT(a, b) ((a) > (b))
#define INTEGERS_GE(a, b) ((a) >= (b))
#define TOTAL(a) (a)
#define LARGEST(a) (a)
#define RESCUE(function, m, value, x) ((m) ? function(x) : (value))
