/* Products of a few rows with a matrix: y = x W^T + b, in float32 or in 8-bit integers.
 *
 * A matrix is stored in panels of PANEL outputs: all that one step of the inner loop reads stands
 * side by side, and a panel stays in the first-level cache while all rows pass by it. Up to ROWS
 * rows are multiplied at once, with one register for each sum of LANES outputs.
 */
#include "../../kernels/tiles.h"
#include "../../kernels/vectors.h"

#define VECTORS (REGISTERS / 8) /* of a panel: 6 x 4 sums fit into 32 registers, 6 x 2 into 16 */
#define PANEL (LANES * VECTORS)
#define ROWS 6
#define PREFETCH_BYTES 4096 /* how far ahead of a product its matrix is loaded */

/* W (outputs, inputs) and b. `padded` is `outputs` rounded up to a multiple of PANEL: W has rows of
 * zeros there, and b the value that the caller gave. */
typedef struct {
  const void *panels; /* float32: [panel][input][PANEL]; int8: [panel][input / 4][PANEL][4] */
  const float *bias; /* (padded) */
  const float *scales; /* (padded) of the rows of an int8 matrix; NULL: the matrix is float32 */
  const int32_t *sums; /* (padded) sums of the rows of an int8 matrix */
  int32_t inputs, outputs, padded;
} Linear;

/* The largest absolute value of a quantized activation. On x86 without VNNI, pairs of products are
 * added in 16 bits, which only 7 bits of an activation do not overflow. */
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || defined(__aarch64__)
#define QUANTIZED_MAX 127
#else
#define QUANTIZED_MAX 63
#endif

/* The byte that stands for a quantized activation is larger than it by so much: x86 multiplies
 * unsigned bytes by signed ones, ARM signed ones. */
#ifdef __aarch64__
#define ZERO_BYTE 0
#else
#define ZERO_BYTE (QUANTIZED_MAX + 1)
#endif

/* sum + x . w, where each lane holds four bytes of x, see ZERO_BYTE, and four signed ones of w. */
INLINE Ints add_dot_products(Ints sum, Ints x, Ints w) {
#if defined(__AVX512VNNI__)
  return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
#elif defined(__AVX512BW__)
  __m512i pairs = _mm512_maddubs_epi16((__m512i)x, (__m512i)w);
  return sum + (Ints)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#elif defined(__AVXVNNI__)
  return (Ints)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)x, (__m256i)w);
#elif defined(__ARM_FEATURE_DOTPROD)
  return (Ints)vdotq_s32((int32x4_t)sum, (int8x16_t)x, (int8x16_t)w);
#elif defined(__aarch64__)
  int16x8_t low = vmull_s8(vget_low_s8((int8x16_t)x), vget_low_s8((int8x16_t)w));
  int16x8_t high = vmull_high_s8((int8x16_t)x, (int8x16_t)w);
  return sum + (Ints)vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
#else
  __m256i pairs = _mm256_maddubs_epi16((__m256i)x, (__m256i)w);
  return sum + (Ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

/* Quantize a row x: q = round(x / scale) + ZERO_BYTE, a byte. Returns the scale, which is NaN if a
 * number of the row is. */
INLINE float quantize(const float *x, int count, uint8_t *q) {
  Ints most = {}; /* the largest |x|, compared by their bits: NaN, which has the largest, counts */
  for (int i = 0; i < count; i += LANES) {
    Ints bits = *(Ints *)(x + i) & 0x7fffffff; /* without the sign */
    Ints is_larger = bits > most;
    most = (bits & is_larger) | (most & ~is_larger);
  }
  int32_t largest = 0;
  for (int i = 0; i < LANES; i++) largest = most[i] > largest ? most[i] : largest;
  float scale;
  memcpy(&scale, &largest, sizeof scale);
  scale /= QUANTIZED_MAX;
  float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
  for (int i = 0; i < count; i += LANES) {
    Floats value = *(Floats *)(x + i) * inverse + (QUANTIZED_MAX + 1.5f); /* above 0: rounds down */
    store_bytes(q + i, __builtin_convertvector(value, Ints) - (QUANTIZED_MAX + 1 - ZERO_BYTE));
  }
  return scale;
}

/* Calls CASE(n) for each number of rows: the kernels are compiled for each. */
#define FOR_EACH_ROW_COUNT(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#define PADDING_ROWS 16 /* rows after the last one that a product may read, but does not use */

/* Begin to load what the product reads some steps later: matrices stream through the caches. */
INLINE void prefetch(const void *weights) {
#pragma GCC unroll 4
  for (int i = 0; i < 4 * PANEL; i += LINE)
    __builtin_prefetch((const char *)weights + PREFETCH_BYTES + i);
}

/* Multiply `rows` rows (a constant, at most ROWS) by one panel of float32. */
INLINE void multiply_panel(const Linear *a, int panel, const int rows, const float *x, float *y) {
  const Floats *w = (const Floats *)a->panels + (size_t)panel * a->inputs * VECTORS;
  Floats sums[ROWS][VECTORS] = {};
  for (int i = 0; i < a->inputs; i++, w += VECTORS) {
    prefetch(w);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) sums[r][v] += w[v] * x[r * a->inputs + i];
  }
  const Floats *bias = (const Floats *)(a->bias + panel * PANEL);
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++)
      ((Floats *)(y + r * a->padded + panel * PANEL))[v] = sums[r][v] + bias[v];
}

/* Make floats of integer sums of row r, `sums` (VECTORS), and store them in y. */
INLINE void store_sums(const Linear *a, int panel, const Ints *sums, float x_scale, float *y) {
  const Floats *bias = (const Floats *)(a->bias + panel * PANEL);
  const Floats *scales = (const Floats *)(a->scales + panel * PANEL);
  const Ints *row_sums = (const Ints *)(a->sums + panel * PANEL);
#pragma GCC unroll 4
  for (int v = 0; v < VECTORS; v++) {
    Ints exact = sums[v] - row_sums[v] * ZERO_BYTE;
    Floats product = __builtin_convertvector(exact, Floats) * (scales[v] * x_scale);
    ((Floats *)(y + panel * PANEL))[v] = product + bias[v];
  }
}

/* multiply_panel for int8: rows of x are quantized, with their scales. */
INLINE void multiply_panel_int8(const Linear *a, int panel, const int rows, const uint8_t *x,
                                const float *x_scales, float *y) {
  const Ints *w = (const Ints *)a->panels + (size_t)panel * (a->inputs / 4) * VECTORS;
  Ints sums[ROWS][VECTORS] = {};
  for (int i = 0; i < a->inputs; i += 4, w += VECTORS) {
    prefetch(w);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
      int32_t four;
      memcpy(&four, x + r * a->inputs + i, 4);
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++)
        sums[r][v] = add_dot_products(sums[r][v], (Ints){} + four, w[v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
    store_sums(a, panel, sums[r], x_scales[r], y + (size_t)r * a->padded);
}

#ifdef __AMX_INT8__
/* Tiles 0 to 3 have sums of 16 outputs each; 4 has x; 5 and 6 have W. */

/* multiply_panel_int8 for up to TILE_ROWS rows in AMX's tiles; x has TILE_ROWS rows in memory. */
static void multiply_panel_tiles(const Linear *a, int panel, int rows, const uint8_t *x,
                                 const float *x_scales, float *y) {
  const int stride = 4 * PANEL; /* bytes from four inputs of all outputs to the next four */
  const uint8_t *w = (const uint8_t *)a->panels + (size_t)panel * a->inputs * PANEL;
  Ints sums[TILE_ROWS][VECTORS];
  __asm__ volatile("" ::: "memory"); /* x is written before tiles read it */
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int i = 0; i < a->inputs; i += TILE_BYTES, w += TILE_BYTES * PANEL) {
    _tile_loadd(4, x + i, a->inputs);
    _tile_loadd(5, w, stride);
    _tile_dpbusd(0, 4, 5);
    _tile_loadd(6, w + TILE_BYTES, stride);
    _tile_dpbusd(1, 4, 6);
    _tile_loadd(5, w + 2 * TILE_BYTES, stride);
    _tile_dpbusd(2, 4, 5);
    _tile_loadd(6, w + 3 * TILE_BYTES, stride);
    _tile_dpbusd(3, 4, 6);
  }
  _tile_stored(0, &sums[0][0], sizeof sums[0]);
  _tile_stored(1, &sums[0][1], sizeof sums[0]);
  _tile_stored(2, &sums[0][2], sizeof sums[0]);
  _tile_stored(3, &sums[0][3], sizeof sums[0]);
  for (int r = 0; r < rows; r++)
    store_sums(a, panel, sums[r], x_scales[r], y + (size_t)r * a->padded);
}
#endif

/* y = x W^T + b of quantized rows: x (rows, inputs) -> y (rows, padded). */
static void multiply_int8(const Linear *a, int rows, const uint8_t *x, const float *x_scales,
                          float *y) {
#ifdef __AMX_INT8__
  int tile_rows = may_use_tiles ? rows : 0; /* rows for which tiles pay are computed by them */
  if (tile_rows > ROWS) configure_tiles();
#endif
  for (int panel = 0; panel < a->padded / PANEL; panel++) {
    int r = 0;
#ifdef __AMX_INT8__
    for (; tile_rows - r > ROWS; r += TILE_ROWS) {
      int count = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;
      multiply_panel_tiles(a, panel, count, x + (size_t)r * a->inputs, x_scales + r,
                           y + (size_t)r * a->padded);
    }
#endif
    for (; r < rows; r += ROWS) {
#define CASE(n) \
  case n: \
    multiply_panel_int8(a, panel, n, x + (size_t)r * a->inputs, x_scales + r, \
                        y + (size_t)r * a->padded); \
    break;
      switch (rows - r < ROWS ? rows - r : ROWS) { FOR_EACH_ROW_COUNT(CASE) }
#undef CASE
    }
  }
}

/* The same in float32. */
static void multiply_float(const Linear *a, int rows, const float *x, float *y) {
  for (int panel = 0; panel < a->padded / PANEL; panel++)
    for (int r = 0; r < rows; r += ROWS) {
#define CASE(n) \
  case n: \
    multiply_panel(a, panel, n, x + (size_t)r * a->inputs, y + (size_t)r * a->padded); \
    break;
      switch (rows - r < ROWS ? rows - r : ROWS) { FOR_EACH_ROW_COUNT(CASE) }
#undef CASE
    }
}

/* y = x W^T + b: x (rows, inputs) -> y (rows, padded). `bytes` and `x_scales` receive the quantized
 * rows of x; they have room for PADDING_ROWS more. */
static void multiply(const Linear *a, int rows, const float *x, float *y, uint8_t *bytes,
                     float *x_scales) {
  if (!a->scales) {
    multiply_float(a, rows, x, y);
    return;
  }
  for (int r = 0; r < rows; r++)
    x_scales[r] = quantize(x + (size_t)r * a->inputs, a->inputs, bytes + (size_t)r * a->inputs);
  multiply_int8(a, rows, bytes, x_scales, y);
}
