/* The instructions of vector loops, for AVX-512 and for AVX2 with FMA, in single or double precision.
   A file that includes this one defines WENGERT_SET as 4, 3 or 0 (see scalars.h), and WENGERT_F32 or WENGERT_F64. Loads
   and stores are given how many elements are left, of which they take no more. */
#if WENGERT_SET == 0
#include "scalars.h"
#else
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if WENGERT_SET == 4
#define TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define INTEGERS __m512i
#define INTEGERS_AND(a, b) _mm512_and_si512(a, b)
#define INTEGERS_OR(a, b) _mm512_or_si512(a, b)
#define INTEGERS_XOR(a, b) _mm512_xor_si512(a, b)
#define TRUTHS_AND(a, b) ((TRUTHS)((a) & (b)))
#define TRUTHS_OR(a, b) ((TRUTHS)((a) | (b)))
#define TRUTHS_XOR(a, b) ((TRUTHS)((a) ^ (b)))
#define TRUTHS_EQ(a, b) ((TRUTHS)~((a) ^ (b)))
#define TRUTHS_SELECT(m, a, b) ((TRUTHS)(((m) & (a)) | (~(m) & (b))))
#define TRUTHS_BITS(m) ((unsigned)(m))
#define TRUTH(x) ((TRUTHS)((x) ? -1 : 0))
#if defined(WENGERT_F32)
#define FLOATS __m512
#define TRUTHS __mmask16
#define WIDTH 16
#define OF(name) _mm512_##name##_ps
#define INT(name) _mm512_##name##_epi32
#define CONSTANT(x) _mm512_set1_ps(x)
#define PART(k) ((k) >= 16 ? (__mmask16)-1 : (__mmask16)((1u << (k)) - 1))
#define AS_INTEGERS(a) _mm512_castps_si512(a)
#define AS_FLOATS(a) _mm512_castsi512_ps(a)
#define TO_INTEGERS(a) _mm512_cvttps_epi32(a)
#define TO_FLOATS(a) _mm512_cvtepi32_ps(a)
#define INTEGER(x) _mm512_set1_epi32(x)
#define SIGN _mm512_set1_ps(-0.0f)
#else
#define FLOATS __m512d
#define TRUTHS __mmask8
#define WIDTH 8
#define OF(name) _mm512_##name##_pd
#define INT(name) _mm512_##name##_epi64
#define CONSTANT(x) _mm512_set1_pd(x)
#define PART(k) ((k) >= 8 ? (__mmask8)-1 : (__mmask8)((1u << (k)) - 1))
#define AS_INTEGERS(a) _mm512_castpd_si512(a)
#define AS_FLOATS(a) _mm512_castsi512_pd(a)
#define TO_INTEGERS(a) _mm512_cvttpd_epi64(a)
#define TO_FLOATS(a) _mm512_cvtepi64_pd(a)
#define INTEGER(x) _mm512_set1_epi64(x)
#define SIGN _mm512_set1_pd(-0.0)
#endif
#define LOAD(p, k) OF(maskz_loadu)(PART(k), p)
#define LOAD_TRUTHS(p, k) ((TRUTHS)_mm_test_epi8_mask( \
    _mm_maskz_loadu_epi8((__mmask16)PART(k), p), _mm_set1_epi8(-1)))
#define STORE(p, v, k) OF(mask_storeu)(p, PART(k), v)
#define NEG(a) OF(xor)(a, SIGN)
#define ABS(a) OF(andnot)(SIGN, a)
#define COPYSIGN(a, b) OF(or)(OF(andnot)(SIGN, a), OF(and)(SIGN, b))
#define RINT(a) OF(roundscale)(a, 8)
#define FLOOR(a) OF(roundscale)(a, 9)
#define CEIL(a) OF(roundscale)(a, 10)
#define TRUNC(a) OF(roundscale)(a, 11)
#if defined(WENGERT_F32)
#define COMPARE(a, b, how) _mm512_cmp_ps_mask(a, b, how)
#define INTEGERS_COMPARE(a, b, how) _mm512_cmp_epi32_mask(a, b, how)
#else
#define COMPARE(a, b, how) _mm512_cmp_pd_mask(a, b, how)
#define INTEGERS_COMPARE(a, b, how) _mm512_cmp_epi64_mask(a, b, how)
#endif
#define SELECT(m, a, b) OF(mask_blend)(m, b, a)
#define INTEGERS_SELECT(m, a, b) INT(mask_blend)(m, b, a)
#define INTEGERS_SHL(a, n) INT(slli)(a, n)
#define INTEGERS_SHR(a, n) INT(srli)(a, n)
#define INTEGERS_SAR(a, n) INT(srai)(a, n)
#define INTEGERS_EQ(a, b) INTEGERS_COMPARE(a, b, _MM_CMPINT_EQ)
#define INTEGERS_NE(a, b) INTEGERS_COMPARE(a, b, _MM_CMPINT_NE)
#define INTEGERS_LT(a, b) INTEGERS_COMPARE(a, b, _MM_CMPINT_LT)
#define INTEGERS_LE(a, b) INTEGERS_COMPARE(a, b, _MM_CMPINT_LE)
#define INTEGERS_GT(a, b) INTEGERS_COMPARE(a, b, _MM_CMPINT_NLE)
#define INTEGERS_GE(a, b) INTEGERS_COMPARE(a, b, _MM_CMPINT_NLT)
#define SCALE(a, n) OF(scalef)(a, n)
#define TOTAL(a) OF(reduce_add)(a)
#define LARGEST(a) OF(reduce_max)(a)

#else /* 3 */
#define TARGET __attribute__((target("avx2,fma")))
#define INTEGERS __m256i
#define INTEGERS_AND(a, b) _mm256_and_si256(a, b)
#define INTEGERS_OR(a, b) _mm256_or_si256(a, b)
#define INTEGERS_XOR(a, b) _mm256_xor_si256(a, b)
#define TRUTHS_AND(a, b) OF(and)(a, b)
#define TRUTHS_OR(a, b) OF(or)(a, b)
#define TRUTHS_XOR(a, b) OF(xor)(a, b)
#define TRUTHS_EQ(a, b) OF(xor)(OF(xor)(a, b), TRUTH(1))
#define TRUTHS_SELECT(m, a, b) OF(blendv)(b, a, m)
#define TRUTHS_BITS(m) ((unsigned)OF(movemask)(m))
#if defined(WENGERT_F32)
#define FLOATS __m256
#define TRUTHS __m256
#define WIDTH 8
#define OF(name) _mm256_##name##_ps
#define INT(name) _mm256_##name##_epi32
#define CONSTANT(x) _mm256_set1_ps(x)
#define AS_INTEGERS(a) _mm256_castps_si256(a)
#define AS_FLOATS(a) _mm256_castsi256_ps(a)
#define TO_INTEGERS(a) _mm256_cvttps_epi32(a)
#define TO_FLOATS(a) _mm256_cvtepi32_ps(a)
#define INTEGER(x) _mm256_set1_epi32(x)
#define SIGN _mm256_set1_ps(-0.0f)
#define INTEGERS_SAR(a, n) _mm256_srai_epi32(a, n)
#define WIDEN(a) _mm256_cvtepi8_epi32(a)
#else
#define FLOATS __m256d
#define TRUTHS __m256d
#define WIDTH 4
#define OF(name) _mm256_##name##_pd
#define INT(name) _mm256_##name##_epi64
#define CONSTANT(x) _mm256_set1_pd(x)
#define AS_INTEGERS(a) _mm256_castpd_si256(a)
#define AS_FLOATS(a) _mm256_castsi256_pd(a)
/* Whole numbers below 2**51 in size: added to 1.5 * 2**52 they stand in the last bits. */
#define MAGIC 6755399441055744.0
#define TO_INTEGERS(a) _mm256_sub_epi64( \
    _mm256_castpd_si256(_mm256_add_pd(_mm256_round_pd(a, 11), _mm256_set1_pd(MAGIC))), \
    _mm256_castpd_si256(_mm256_set1_pd(MAGIC)))
#define TO_FLOATS(a) _mm256_sub_pd( \
    _mm256_castsi256_pd(_mm256_add_epi64(a, _mm256_castpd_si256(_mm256_set1_pd(MAGIC)))), \
    _mm256_set1_pd(MAGIC))
#define INTEGER(x) _mm256_set1_epi64x(x)
#define SIGN _mm256_set1_pd(-0.0)
#define INTEGERS_SAR(a, n) wengert_sar(a, n)
#define WIDEN(a) _mm256_cvtepi8_epi64(a)
#endif
#define LOAD(p, k) wengert_load(p, k)
#define STORE(p, v, k) wengert_store(p, v, k)
#define LOAD_TRUTHS(p, k) wengert_load_truths(p, k)
#define TOTAL(a) wengert_total(a)
#define LARGEST(a) wengert_largest(a)
#define TRUTH(x) AS_FLOATS(_mm256_set1_epi64x((x) ? -1 : 0))
#define NEG(a) OF(xor)(a, SIGN)
#define ABS(a) OF(andnot)(SIGN, a)
#define COPYSIGN(a, b) OF(or)(OF(andnot)(SIGN, a), OF(and)(SIGN, b))
#define RINT(a) OF(round)(a, 8)
#define FLOOR(a) OF(round)(a, 9)
#define CEIL(a) OF(round)(a, 10)
#define TRUNC(a) OF(round)(a, 11)
#define COMPARE(a, b, how) OF(cmp)(a, b, how)
#define SELECT(m, a, b) OF(blendv)(b, a, m)
#define INTEGERS_SELECT(m, a, b) AS_INTEGERS(OF(blendv)(AS_FLOATS(b), AS_FLOATS(a), m))
#define INTEGERS_SHL(a, n) INT(slli)(a, n)
#define INTEGERS_SHR(a, n) INT(srli)(a, n)
#define INTEGERS_EQ(a, b) AS_FLOATS(INT(cmpeq)(a, b))
#define INTEGERS_NE(a, b) TRUTHS_XOR(INTEGERS_EQ(a, b), TRUTH(1))
#define INTEGERS_GT(a, b) AS_FLOATS(INT(cmpgt)(a, b))
#define INTEGERS_LT(a, b) INTEGERS_GT(b, a)
#define INTEGERS_LE(a, b) TRUTHS_XOR(INTEGERS_GT(a, b), TRUTH(1))
#define INTEGERS_GE(a, b) TRUTHS_XOR(INTEGERS_GT(b, a), TRUTH(1))
#endif

/* What the C library computes for the lanes of which a condition holds, seldom any. */
#define RESCUE(function, m, value, x) \
    (__builtin_expect(TRUTHS_BITS(m) != 0, 0) ? wengert_rescue(function, TRUTHS_BITS(m), value, x) : (value))
#define TRUTHS_NE(a, b) TRUTHS_XOR(a, b)
#define ADD(a, b) OF(add)(a, b)
#define SUB(a, b) OF(sub)(a, b)
#define MUL(a, b) OF(mul)(a, b)
#define DIV(a, b) OF(div)(a, b)
#define FMA(a, b, c) OF(fmadd)(a, b, c)
#define SQRT(a) OF(sqrt)(a)
/* The first operand if it is larger or lesser, else the second, as where one is no number. */
#define MAXIMUM(a, b) OF(max)(a, b)
#define MINIMUM(a, b) OF(min)(a, b)
#define MAXIMUM_OR_NAN(a, b) SELECT(UNO(a, a), a, MAXIMUM(a, b))
#define MINIMUM_OR_NAN(a, b) SELECT(UNO(a, a), a, MINIMUM(a, b))
#define INTEGERS_ADD(a, b) INT(add)(a, b)
#define INTEGERS_SUB(a, b) INT(sub)(a, b)
#define LT(a, b) COMPARE(a, b, _CMP_LT_OQ)
#define LE(a, b) COMPARE(a, b, _CMP_LE_OQ)
#define GT(a, b) COMPARE(a, b, _CMP_GT_OQ)
#define GE(a, b) COMPARE(a, b, _CMP_GE_OQ)
#define EQ(a, b) COMPARE(a, b, _CMP_EQ_OQ)
#define NE(a, b) COMPARE(a, b, _CMP_NEQ_UQ)
#define UNO(a, b) COMPARE(a, b, _CMP_UNORD_Q)

#if defined(WENGERT_F32)
typedef float wengert_real;
#else
typedef double wengert_real;
#endif

#if WENGERT_SET == 3
static inline TARGET FLOATS wengert_load(const wengert_real* p, int64_t left) {
    if (left >= WIDTH) return OF(loadu)(p);
    wengert_real lanes[WIDTH] = {0};
    for (int64_t i = 0; i < left; i++) lanes[i] = p[i];
    return OF(loadu)(lanes);
}

static inline TARGET void wengert_store(wengert_real* p, FLOATS v, int64_t left) {
    if (left >= WIDTH) { OF(storeu)(p, v); return; }
    wengert_real lanes[WIDTH];
    OF(storeu)(lanes, v);
    for (int64_t i = 0; i < left; i++) p[i] = lanes[i];
}

static inline TARGET TRUTHS wengert_load_truths(const char* p, int64_t left) {
    int64_t bytes = 0;
    memcpy(&bytes, p, (size_t)(left < WIDTH ? left : WIDTH));
    INTEGERS wide = WIDEN(_mm_cvtsi64_si128(bytes));
    return AS_FLOATS(INT(cmpgt)(wide, _mm256_setzero_si256()));
}

static inline TARGET wengert_real wengert_total(FLOATS v) {
    wengert_real lanes[WIDTH], total = 0;
    OF(storeu)(lanes, v);
    for (int i = 0; i < WIDTH; i++) total += lanes[i];
    return total;
}

static inline TARGET wengert_real wengert_largest(FLOATS v) {
    wengert_real lanes[WIDTH];
    OF(storeu)(lanes, v);
    for (int i = 1; i < WIDTH; i++) lanes[0] = lanes[i] > lanes[0] ? lanes[i] : lanes[0];
    return lanes[0];
}
#if defined(WENGERT_F64)
/* Bits moved right with the sign, for which AVX2 has no instruction. */
static inline TARGET INTEGERS wengert_sar(INTEGERS a, int n) {
    INTEGERS sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), a);
    return _mm256_xor_si256(_mm256_srli_epi64(_mm256_xor_si256(a, sign), n), sign);
}
#endif
#endif

static __attribute__((noinline, unused)) TARGET FLOATS wengert_rescue(
        wengert_real (*function)(wengert_real), unsigned lanes, FLOATS value, FLOATS x) {
    wengert_real values[WIDTH], points[WIDTH];
    OF(storeu)(values, value);
    OF(storeu)(points, x);
    for (int i = 0; i < WIDTH; i++)
        if (lanes >> i & 1) values[i] = function(points[i]);
    return OF(loadu)(values);
}
#endif

#ifndef SCALE
#if defined(WENGERT_F32)
#define POWER_OF_TWO(n) AS_FLOATS(INTEGERS_SHL(INTEGERS_ADD(TO_INTEGERS(n), INTEGER(127)), 23))
#else
#define POWER_OF_TWO(n) AS_FLOATS(INTEGERS_SHL(INTEGERS_ADD(TO_INTEGERS(n), INTEGER(1023)), 52))
#endif
#define SCALE(a, n) wengert_scale(a, n)
/* a * 2**n for a whole number n, in two steps so that neither power leaves the range. */
static inline TARGET FLOATS wengert_scale(FLOATS a, FLOATS n) {
    FLOATS half = FLOOR(MUL(n, CONSTANT(0.5)));
    return MUL(MUL(a, POWER_OF_TWO(half)), POWER_OF_TWO(SUB(n, half)));
}
#endif
