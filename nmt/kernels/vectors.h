/* Vectors of floats, as wide as a register of this processor. */
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __AVX512F__
#define LANES 16 /* floats in a register */
#else
#define LANES 8
#endif
#define INLINE static inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("default")))

/* They may stand at any address, but are read fastest at multiples of 64. */
typedef float Floats __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));
typedef uint8_t Bytes __attribute__((vector_size(LANES), may_alias, aligned(1)));

INLINE Floats all_floats(float x) { return (Floats){} + x; }

INLINE float sum_of(Floats x) {
#ifdef __AVX512F__
  return _mm512_reduce_add_ps((__m512)x);
#else
  __m128 half = _mm_add_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
#endif
}

INLINE float max_of(Floats x) {
#ifdef __AVX512F__
  return _mm512_reduce_max_ps((__m512)x);
#endif
  float most = x[0];
  for (int i = 1; i < LANES; i++) most = x[i] > most ? x[i] : most;
  return most;
}

/* The larger of x and y; y where one of them is NaN. */
INLINE Floats larger(Floats x, Floats y) {
#ifdef __AVX512F__
  return (Floats)_mm512_max_ps((__m512)x, (__m512)y);
#else
  return (Floats)_mm256_max_ps((__m256)x, (__m256)y);
#endif
}

/* e^x for x <= 88, with a relative error below 2e-7; e^-87 for less than -87; NaN for NaN. */
INLINE Floats exponential(Floats x) {
  x = larger(all_floats(-87.0f), x);
  Floats n = x * 1.44269504f + 12582912.0f - 12582912.0f; /* 1.5 * 2^23: rounds to an integer */
  Ints whole = __builtin_convertvector(n, Ints);
  Floats r = x - n * 0.693359375f + n * 2.12194440e-4f; /* ln 2 in two parts */
  Floats p = all_floats(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  return p * (Floats)((whole + 127) << 23);
}

/* bfloat16: the upper half of a float. */
typedef uint16_t Bf16;
typedef uint16_t Halves __attribute__((vector_size(2 * LANES), may_alias, aligned(2)));

INLINE Ints load_int16(const int16_t *x) {
#ifdef __AVX512F__
  return (Ints)_mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)x));
#else
  return (Ints)_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)x));
#endif
}

INLINE Floats load_bf16(const Bf16 *x) { return (Floats)(load_int16((const int16_t *)x) << 16); }

/* Store x, rounded to the nearest, and to the even one of two. */
INLINE void store_bf16(Bf16 *y, Floats x) {
#ifdef __AVX512BF16__
  *(Halves *)y = (Halves)_mm512_cvtneps_pbh((__m512)x);
#else
  Ints bits = (Ints)x;
  bits += 0x7fff + ((bits >> 16) & 1);
  *(Halves *)y = __builtin_convertvector(bits >> 16, Halves);
#endif
}
