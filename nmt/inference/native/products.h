/* Vectors, and products of a few rows with a matrix: y = x W^T + b, in float32 or in 8-bit integers.
 *
 * A matrix is stored in panels of PANEL outputs: all that one step of the inner loop reads stands
 * side by side, and a panel stays in the first-level cache while all rows pass by it. Up to ROWS
 * rows are multiplied at once, with one register for each sum of LANES outputs.
 */
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __AVX512F__
#define LANES 16 /* floats in a register */
#define VECTORS 4 /* registers in a panel: 6 x 4 sums fit into 32 registers */
#else
#define LANES 8
#define VECTORS 2 /* 6 x 2 sums fit into 16 registers */
#endif
#define PANEL (LANES * VECTORS)
#define ROWS 6
#define INLINE static inline __attribute__((always_inline))

typedef float Floats __attribute__((vector_size(4 * LANES), may_alias));
typedef int32_t Ints __attribute__((vector_size(4 * LANES), may_alias));
typedef uint8_t Bytes __attribute__((vector_size(LANES), may_alias));

/* W (outputs, inputs) and b. `padded` is `outputs` rounded up to a multiple of PANEL: W has rows of
 * zeros there, and b the value that the caller gave. */
typedef struct {
  const void *panels; /* float32: [panel][input][PANEL]; int8: [panel][input / 4][PANEL][4] */
  const float *bias; /* (padded) */
  const float *scales; /* (padded) of the rows of an int8 matrix; NULL: the matrix is float32 */
  const int32_t *sums; /* (padded) sums of the rows of an int8 matrix */
  int32_t inputs, outputs, padded;
} Linear;

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

/* The largest absolute value of a quantized activation. Without VNNI, pairs of products are added in
 * 16 bits, which only 7 bits of an activation do not overflow. */
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define QUANTIZED_MAX 127
#else
#define QUANTIZED_MAX 63
#endif

/* sum + x . w, where each lane holds four unsigned bytes of x and four signed ones of w. */
INLINE Ints add_dot_products(Ints sum, Ints x, Ints w) {
#if defined(__AVX512VNNI__)
  return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
#elif defined(__AVX512BW__)
  __m512i pairs = _mm512_maddubs_epi16((__m512i)x, (__m512i)w);
  return sum + (Ints)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#elif defined(__AVXVNNI__)
  return (Ints)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)x, (__m256i)w);
#else
  __m256i pairs = _mm256_maddubs_epi16((__m256i)x, (__m256i)w);
  return sum + (Ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

/* Quantize a row x: q = round(x / scale) + QUANTIZED_MAX + 1, an unsigned byte. Returns the scale. */
INLINE float quantize(const float *x, int count, uint8_t *q) {
  Floats most = {};
  for (int i = 0; i < count; i += LANES) {
    Floats value = *(Floats *)(x + i);
    most = larger(most, larger(value, -value));
  }
  float scale = max_of(most) / QUANTIZED_MAX;
  float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
  for (int i = 0; i < count; i += LANES) {
    Floats value = *(Floats *)(x + i) * inverse + (QUANTIZED_MAX + 1.5f);
    *(Bytes *)(q + i) = __builtin_convertvector(__builtin_convertvector(value, Ints), Bytes);
  }
  return scale;
}

/* Multiply `rows` rows (a constant, at most ROWS) by one panel of float32. */
INLINE void multiply_panel(const Linear *a, int panel, const int rows, const float *x, int stride,
                           float *y) {
  const Floats *w = (const Floats *)a->panels + (size_t)panel * a->inputs * VECTORS;
  Floats sums[ROWS][VECTORS] = {};
  for (int i = 0; i < a->inputs; i++, w += VECTORS)
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) sums[r][v] += w[v] * x[r * stride + i];
  const Floats *bias = (const Floats *)(a->bias + panel * PANEL);
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++)
      ((Floats *)(y + r * a->padded + panel * PANEL))[v] = sums[r][v] + bias[v];
}

/* The same for int8: rows of x are quantized, with their scales. */
INLINE void multiply_panel_int8(const Linear *a, int panel, const int rows, const uint8_t *x,
                                const float *x_scales, float *y) {
  const Ints *w = (const Ints *)a->panels + (size_t)panel * (a->inputs / 4) * VECTORS;
  Ints sums[ROWS][VECTORS] = {};
  for (int i = 0; i < a->inputs; i += 4, w += VECTORS)
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
      int32_t four;
      memcpy(&four, x + r * a->inputs + i, 4);
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++)
        sums[r][v] = add_dot_products(sums[r][v], (Ints){} + four, w[v]);
    }
  const Floats *bias = (const Floats *)(a->bias + panel * PANEL);
  const Floats *scales = (const Floats *)(a->scales + panel * PANEL);
  const Ints *row_sums = (const Ints *)(a->sums + panel * PANEL);
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) {
      /* the bytes of x are larger by QUANTIZED_MAX + 1 than what they stand for */
      Ints exact = sums[r][v] - row_sums[v] * (QUANTIZED_MAX + 1);
      Floats product = __builtin_convertvector(exact, Floats) * (scales[v] * x_scales[r]);
      ((Floats *)(y + r * a->padded + panel * PANEL))[v] = product + bias[v];
    }
}

#define FOR_EACH_ROW_COUNT(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)

/* y = x W^T + b: x (rows, stride) -> y (rows, padded). `bytes` has room for rows * inputs bytes. */
static void multiply(const Linear *a, int rows, const float *x, int stride, float *y,
                     uint8_t *bytes, float *x_scales) {
  if (a->scales)
    for (int r = 0; r < rows; r++)
      x_scales[r] = quantize(x + r * stride, a->inputs, bytes + r * a->inputs);
  for (int panel = 0; panel < a->padded / PANEL; panel++)
    for (int r = 0; r < rows; r += ROWS) {
      float *to = y + (size_t)r * a->padded;
      int count = rows - r < ROWS ? rows - r : ROWS;
      if (a->scales) {
#define CASE(n) case n: multiply_panel_int8(a, panel, n, bytes + r * a->inputs, x_scales + r, to); break;
        switch (count) { FOR_EACH_ROW_COUNT(CASE) }
#undef CASE
      } else {
#define CASE(n) case n: multiply_panel(a, panel, n, x + (size_t)r * stride, stride, to); break;
        switch (count) { FOR_EACH_ROW_COUNT(CASE) }
#undef CASE
      }
    }
}
