/* Vectors of floats, as wide as a register of this processor: of x86 or of 64-bit ARM. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__)
#define LANES 16 /* floats in a register */
#define REGISTERS 32
#elif defined(__AVX2__)
#define LANES 8
#define REGISTERS 16
#elif defined(__aarch64__)
#define LANES 4
#define REGISTERS 32
#else
#error "this code needs AVX2 or 64-bit ARM"
#endif
#ifdef __aarch64__
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif
#define LINE 64 /* bytes of a line of a cache of x86; on ARM a line has as many or more */
#define INLINE static inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("default")))

/* They may stand at any address, but are read fastest at multiples of 64. */
typedef float Floats __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));
typedef uint8_t Bytes __attribute__((vector_size(LANES), may_alias, aligned(1)));

INLINE Floats all_floats(float x) { return (Floats){} + x; }

INLINE float sum_of(Floats x) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps((__m512)x);
#elif defined(__aarch64__)
  return vaddvq_f32((float32x4_t)x);
#else
  __m128 half = _mm_add_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
#endif
}

INLINE float max_of(Floats x) {
#if defined(__AVX512F__)
  return _mm512_reduce_max_ps((__m512)x);
#elif defined(__aarch64__)
  return vmaxvq_f32((float32x4_t)x);
#else
  float most = x[0];
  for (int i = 1; i < LANES; i++) most = x[i] > most ? x[i] : most;
  return most;
#endif
}

/* The larger of x and y; y where one of them is NaN. */
INLINE Floats larger(Floats x, Floats y) {
#if defined(__AVX512F__)
  return (Floats)_mm512_max_ps((__m512)x, (__m512)y);
#elif defined(__aarch64__)
  return (Floats)vbslq_f32((uint32x4_t)(x > y), (float32x4_t)x, (float32x4_t)y);
#else
  return (Floats)_mm256_max_ps((__m256)x, (__m256)y);
#endif
}

/* The results of a comparison as bits, that of lane 0 as the lowest. */
INLINE int bits_of(Ints is_true) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask((__m512i)is_true);
#elif defined(__aarch64__)
  return vaddvq_u32(vandq_u32((uint32x4_t)is_true, (uint32x4_t){1, 2, 4, 8}));
#else
  return _mm256_movemask_ps((__m256)is_true);
#endif
}

/* Store the lowest byte of each number. */
INLINE void store_bytes(uint8_t *y, Ints x) {
#ifdef __aarch64__
  uint16x4_t halves = vmovn_u32((uint32x4_t)x);
  uint8x8_t bytes = vmovn_u16(vcombine_u16(halves, halves));
  memcpy(y, &bytes, LANES);
#else
  *(Bytes *)y = __builtin_convertvector(x, Bytes);
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
#if defined(__AVX512F__)
  return (Ints)_mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)x));
#elif defined(__aarch64__)
  return (Ints)vmovl_s16(vld1_s16(x));
#else
  return (Ints)_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)x));
#endif
}

INLINE Floats load_bf16(const Bf16 *x) { return (Floats)(load_int16((const int16_t *)x) << 16); }

/* Store x, rounded to the nearest, and to the even one of two. */
INLINE void store_bf16(Bf16 *y, Floats x) {
#if defined(__AVX512BF16__)
  *(Halves *)y = (Halves)_mm512_cvtneps_pbh((__m512)x);
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  *(Halves *)y = (Halves)vcvt_bf16_f32((float32x4_t)x);
#else
  Ints bits = (Ints)x;
  bits += 0x7fff + ((bits >> 16) & 1);
  *(Halves *)y = __builtin_convertvector(bits >> 16, Halves);
#endif
}
