/* The gradient of the weights of a linear map, g^T x for g (tokens, F) and x (tokens, D), by AMX.
 *
 * The terms of its sums are tokens. A tile holds 32 of them for 16 columns: those of g are the rows
 * of the left tile, those of x are columns of the right tile, with two tokens in each of its rows.
 */
#include "tiles.h"

#if defined(__AMX_BF16__) && defined(__AVX512BF16__) && defined(__AVX512BW__)
#define TERMS 32 /* tokens of a tile */
#define TILE_SIZE (TILE_ROWS * TERMS)
#define CHUNK 512 /* tokens whose products are added up at once */
#define BLOCK 1024 /* columns of g and of x whose tiles are in memory: 1 MB of each */

typedef struct {
  Bf16 left[CHUNK * BLOCK], right[CHUNK * BLOCK]; /* tiles of the same columns in sequence */
  Bf16 rest[TERMS * BLOCK]; /* the last tokens, if they are fewer than 32, and zeros */
  Floats sums[BLOCK]; /* of g: each the sum of its 16 numbers */
} Tiles;

/* Write 8 columns of 32 tokens as rows, and add each to its sum. */
INLINE void pack_left(const Bf16 *x, size_t stride, Bf16 *rows, Floats *sums) {
  const __m512bh ones = (__m512bh)_mm512_set1_epi16(0x3f80);
  __m512i a[8], b[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) { /* the tokens i, 8 + i, 16 + i and 24 + i side by side */
    const Bf16 *at = x + i * stride;
    a[i] = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)at));
    a[i] = _mm512_inserti32x4(a[i], _mm_loadu_si128((const __m128i *)(at + 8 * stride)), 1);
    a[i] = _mm512_inserti32x4(a[i], _mm_loadu_si128((const __m128i *)(at + 16 * stride)), 2);
    a[i] = _mm512_inserti32x4(a[i], _mm_loadu_si128((const __m128i *)(at + 24 * stride)), 3);
  }
#pragma GCC unroll 3
  for (int n = 0; n < 3; n++) { /* three perfect shuffles transpose 8 by 8 numbers */
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      b[2 * i] = _mm512_unpacklo_epi16(a[i], a[i + 4]);
      b[2 * i + 1] = _mm512_unpackhi_epi16(a[i], a[i + 4]);
    }
    memcpy(a, b, sizeof a);
  }
  memcpy(rows, a, sizeof a);
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++)
    sums[i] = (Floats)_mm512_dpbf16_ps((__m512)sums[i], (__m512bh)a[i], ones);
}

/* Write 16 columns of 32 tokens as 16 rows of pairs. */
INLINE void pack_right(const Bf16 *x, size_t stride, Bf16 *rows) {
#pragma GCC unroll 16
  for (int i = 0; i < TILE_ROWS; i++) {
    const int16_t *first = (const int16_t *)x + 2 * i * stride, *second = first + stride;
    *(Ints *)(rows + i * TERMS) = (load_int16(first) & 0xffff) | load_int16(second) << 16;
  }
}

/* Write up to BLOCK columns of g, or of x if not `is_left`, into tiles. */
static void pack(int tokens, int columns, const Bf16 *x, int width, Tiles *tiles, int is_left) {
  int steps = (tokens + TERMS - 1) / TERMS;
  for (int s = 0; s < steps; s++, tokens -= TERMS, x += (size_t)TERMS * width) {
    if (tokens < TERMS) {
      memset(tiles->rest, 0, sizeof tiles->rest);
      for (int t = 0; t < tokens; t++)
        memcpy(tiles->rest + t * BLOCK, x + (size_t)t * width, sizeof(Bf16) * columns);
      x = tiles->rest, width = BLOCK;
    }
    for (int c = 0; c < columns; c += TILE_ROWS) {
      int tile = c * steps * TERMS + s * TILE_SIZE;
      if (is_left) {
        pack_left(x + c, width, tiles->left + tile, tiles->sums + c);
        pack_left(x + c + 8, width, tiles->left + tile + TILE_SIZE / 2, tiles->sums + c + 8);
      } else {
        pack_right(x + c, width, tiles->right + tile);
      }
    }
  }
  __asm__ volatile("" ::: "memory"); /* all is written before tiles read it */
}

/* Compute 32 rows (16 if not `tall`) and 32 columns (16 if not `wide`) of y. */
INLINE void multiply_tiles(int steps, const Bf16 *left, const Bf16 *right, float *y, int width,
                           int tall, int wide, int adds) {
  const int row = sizeof(float) * width, next = steps * TILE_SIZE;
  float *low = y + TILE_ROWS * width;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (adds) _tile_loadd(0, y, row);
  if (adds && wide) _tile_loadd(1, y + TILE_ROWS, row);
  if (adds && tall) _tile_loadd(2, low, row);
  if (adds && tall && wide) _tile_loadd(3, low + TILE_ROWS, row);
  for (int s = 0; s < steps; s++, left += TILE_SIZE, right += TILE_SIZE) {
    _tile_loadd(4, left, TILE_BYTES);
    _tile_loadd(6, right, TILE_BYTES);
    _tile_dpbf16ps(0, 4, 6);
    if (wide) _tile_loadd(7, right + next, TILE_BYTES);
    if (wide) _tile_dpbf16ps(1, 4, 7);
    if (tall) _tile_loadd(5, left + next, TILE_BYTES);
    if (tall) _tile_dpbf16ps(2, 5, 6);
    if (tall && wide) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, y, row);
  if (wide) _tile_stored(1, y + TILE_ROWS, row);
  if (tall) _tile_stored(2, low, row);
  if (tall && wide) _tile_stored(3, low + TILE_ROWS, row);
}

/* y (F, D) = g^T x, or y += g^T x. The sum of g over all tokens is added to `bias` (F), if that is
 * not NULL. Returns 1 if there is no memory. */
EXPORT int32_t nmt_weight_gradient(int32_t tokens, int32_t f, int32_t d, int32_t adds,
                                   const Bf16 *g, const Bf16 *x, float *y, float *bias) {
  Tiles *tiles = aligned_alloc(64, sizeof(Tiles));
  if (!tiles) return 1;
  configure_tiles();
  for (int t = 0; t < tokens || !t; t += CHUNK, adds = 1)
    for (int d0 = 0; d0 < d; d0 += BLOCK) {
      int count = tokens - t < CHUNK ? tokens - t : CHUNK, steps = (count + TERMS - 1) / TERMS;
      int columns = d - d0 < BLOCK ? d - d0 : BLOCK;
      pack(count, columns, x + (size_t)t * d + d0, d, tiles, 0);
      for (int f0 = 0; f0 < f; f0 += BLOCK) {
        int rows = f - f0 < BLOCK ? f - f0 : BLOCK;
        memset(tiles->sums, 0, sizeof tiles->sums);
        if (f > BLOCK || !d0) pack(count, rows, g + (size_t)t * f + f0, f, tiles, 1);
        for (int i = 0; bias && !d0 && i < rows; i++) bias[f0 + i] += sum_of(tiles->sums[i]);
        for (int i = 0; i < rows; i += 2 * TILE_ROWS)
          for (int j = 0; j < columns; j += 2 * TILE_ROWS)
            multiply_tiles(steps, tiles->left + i * steps * TERMS, tiles->right + j * steps * TERMS,
                           y + (size_t)(f0 + i) * d + d0 + j, d, rows - i > TILE_ROWS,
                           columns - j > TILE_ROWS, adds);
      }
    }
  release_tiles();
  free(tiles);
  return 0;
}

EXPORT int32_t nmt_can_use_tiles(void) { return may_use_tiles; }
#else
EXPORT int32_t nmt_can_use_tiles(void) { return 0; }
#endif
