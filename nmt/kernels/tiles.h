/* AMX: products of tiles, which are registers of 16 rows of 64 bytes. */
#if defined(__AMXTILE__) && !defined(__AMX_TILE__) /* names of Clang before version 16 */
#define __AMX_TILE__ 1
#ifdef __AMXINT8__
#define __AMX_INT8__ 1
#endif
#ifdef __AMXBF16__
#define __AMX_BF16__ 1
#endif
#endif
#ifdef __AMX_TILE__
#include <immintrin.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TILE_ROWS 16
#define TILE_BYTES 64 /* of a row of a tile */
#define TILES 8

/* Whether Linux lets this process use tiles; without asking first it would be ended. */
static int may_use_tiles;
__attribute__((constructor)) static void ask_for_tiles(void) {
  const int request_permission = 0x1023, tile_data = 18; /* arch_prctl(2), XFEATURE_XTILE_DATA */
  may_use_tiles = !syscall(SYS_arch_prctl, request_permission, tile_data);
}

/* Give all tiles 16 rows of 64 bytes. */
static void configure_tiles(void) {
  struct {
    uint8_t palette, start_row, unused[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } tiles = {.palette = 1};
  for (int i = 0; i < TILES; i++) tiles.bytes[i] = TILE_BYTES, tiles.rows[i] = TILE_ROWS;
  _tile_loadconfig(&tiles);
}
#endif

/* To be called at the end of each call from Python that may have used tiles. */
static inline void release_tiles(void) {
#ifdef __AMX_TILE__
  if (may_use_tiles) _tile_release();
#endif
}
