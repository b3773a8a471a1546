/* Random numbers for dropout: xoshiro128++ (Blackman and Vigna, 2019), sixteen generators side by side on
 * every processor, so that a seed gives the same numbers everywhere. */
#define GENERATORS 16
#define AT_ONCE (2 * GENERATORS) /* numbers of 16 bits that they give together */
typedef uint32_t Words __attribute__((vector_size(4 * GENERATORS), may_alias, aligned(4)));

#define ROTATE(x, bits) ((x) << (bits) | (x) >> (32 - (bits)))

/* SplitMix64, by which the authors fill the state of their generators. */
static uint64_t next_of_seed(uint64_t *seed) {
  uint64_t x = *seed += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/* Fill `count` numbers of 16 bits. */
EXPORT void nmt_draw(const uint64_t *seed, size_t count, int16_t *draws) {
  uint64_t next = *seed;
  Words state[4];
  for (int i = 0; i < 4; i++)
    for (int lane = 0; lane < GENERATORS; lane++) state[i][lane] = next_of_seed(&next) >> 32;
  for (size_t i = 0; i < count; i += AT_ONCE) {
    Words numbers = ROTATE(state[0] + state[3], 7) + state[0];
    Words shifted = state[1] << 9;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = ROTATE(state[3], 11);
    if (i + AT_ONCE <= count)
      memcpy(draws + i, &numbers, sizeof numbers);
    else
      memcpy(draws + i, &numbers, (count - i) * sizeof *draws);
  }
}
