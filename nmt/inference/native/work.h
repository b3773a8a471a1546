/* The memory of a search: hypotheses, their past, and buffers for the layers of layers.h.
 *
 * All live hypotheses of all sentences are the rows of one step. A sentence has k slots at each
 * position; the keys and values of a slot are never copied, and each hypothesis knows in which slot
 * each position of its past stands. Positions follow one another in memory, so that only as much
 * memory is touched as the longest translation needs, not as the longest one might need.
 */
#include "layers.h"

#define EXPORT __attribute__((visibility("default")))
#define ROWS_OF_LOGITS 96 /* so many logits fit into the caches, and the matrix is read less often */

typedef struct {
  float score;
  int32_t parent, token;
} Candidate;

typedef struct {
  int32_t longest; /* tokens that its translation may have, EOS included */
  int32_t live; /* hypotheses; 0: the sentence is done */
  int32_t ended; /* hypotheses that have ended so far, kept or not */
  float *scores; /* (k) log P of the live ones */
  int32_t *latest; /* (k) their last tokens */
  int32_t *past, *next_past; /* (k, T) the slots of their past; the second for the next step */
  int32_t *tokens; /* (T, k) the token in each slot, at position t the input of step t */
} Sentence;

/* One block, from which all memory of a search is taken; it is freed at the end. */
typedef struct {
  char *block;
  size_t used, size;
} Memory;

static void *take(Memory *memory, size_t bytes) {
  void *start = memory->block ? memory->block + memory->used : NULL;
  memory->used += (bytes + 63) / 64 * 64;
  return start;
}

typedef struct {
  Memory block;
  Buffers buffers;
  Sentence *sentences;
  Query *queries;
  Candidate *candidates, *best;
  int32_t *row_sentence, *row_slot, *row_counts;
  float *x, *logits, *cache, **memory;
  int32_t longest_source;
} Work;

/* Divide the block; without a block, count how large it must be. */
static void divide(Work *w, const Model *m, size_t k, int sentences, int source_rows, int longest,
                   int longest_source) {
  Memory *block = &w->block;
  size_t d = m->d_model, steps = (size_t)sentences * k;
  size_t rows = steps > (size_t)source_rows ? steps : (size_t)source_rows;
  size_t wide = m->d_ff > 3 * (int)d ? (size_t)m->d_ff : 3 * d;
  size_t attended = (longest > longest_source ? longest : longest_source) + LANES;
  Buffers *b = &w->buffers;
  b->normalized = take(block, rows * d * 4);
  b->projected = take(block, rows * 3 * d * 4);
  b->attended = take(block, rows * d * 4);
  b->hidden = take(block, rows * m->d_ff * 4);
  b->result = take(block, rows * d * 4);
  b->scores = take(block, attended * 4);
  b->x_scales = take(block, rows * 4);
  b->bytes = take(block, (rows + PADDING_ROWS) * wide);
  w->x = take(block, rows * d * 4);
  w->logits = take(block, (size_t)ROWS_OF_LOGITS * m->projection.padded * 4);
  w->queries = take(block, steps * sizeof(Query));
  w->row_sentence = take(block, steps * 4);
  w->row_slot = take(block, steps * 4);
  w->row_counts = take(block, steps * 4);
  w->candidates = take(block, steps * (k + 1) * sizeof(Candidate));
  w->best = take(block, 2 * k * sizeof(Candidate));
  w->memory = take(block, m->decoder_layers * sizeof(float *));
  w->sentences = take(block, sentences * sizeof(Sentence));
  for (int l = 0; l < m->decoder_layers; l++) {
    float *memory = take(block, source_rows * 2 * d * 4);
    if (block->block) w->memory[l] = memory;
  }
  for (int n = 0; n < sentences; n++) {
    Sentence x = {0};
    x.scores = take(block, k * 4);
    x.latest = take(block, k * 4);
    x.past = take(block, k * longest * 4);
    x.next_past = take(block, k * longest * 4);
    x.tokens = take(block, k * (longest + 1) * 4);
    if (block->block) w->sentences[n] = x;
  }
  w->cache = take(block, (size_t)longest * m->decoder_layers * steps * 2 * d * 4); /* the last one */
}

/* Encode sentences n, the source ids starts[n] to before starts[n + 1], and project what k hypotheses
 * of at most `longest` tokens each will attend to. Returns 0, or 1 if the memory does not suffice. */
static int begin(Work *w, const Model *m, int k, int sentences, const int32_t *source,
                 const int32_t *starts, int longest) {
  int source_rows = starts[sentences], longest_source = 0;
  for (int n = 0; n < sentences; n++)
    if (starts[n + 1] - starts[n] > longest_source) longest_source = starts[n + 1] - starts[n];
  w->block = (Memory){0};
  /* first without memory, to learn how much is needed */
  divide(w, m, k, sentences, source_rows, longest, longest_source);
  w->block.size = w->block.used, w->block.used = 0;
  if (!(w->block.block = aligned_alloc(64, w->block.size))) return 1;
  divide(w, m, k, sentences, source_rows, longest, longest_source);
  w->longest_source = longest_source;
  encode(m, sentences, source, starts, w->x, &w->buffers);
  for (int l = 0; l < m->decoder_layers; l++)
    apply(&m->decoder[l].cross_key_value, source_rows, w->x, w->memory[l], &w->buffers);
  return 0;
}

/* To be called at the end of each call from Python that has computed products. */
static void release_tiles(void) {
#ifdef __AMX_INT8__
  if (may_use_tiles) _tile_release();
#endif
}

/* log(sum(exp(logits))) of one row. */
static float log_sum(const float *logits, int size) {
  Floats maxima = *(Floats *)logits, total = {};
  for (int i = LANES; i < size; i += LANES) maxima = larger(maxima, *(Floats *)(logits + i));
  float largest = max_of(maxima);
  for (int i = 0; i < size; i += LANES) total += exponential(*(Floats *)(logits + i) - largest);
  return logf(sum_of(total)) + largest;
}

/* Insert into the `count` best so far, `most` at most, sorted by falling score. */
INLINE int insert(Candidate *best, int count, int most, Candidate candidate) {
  if (count == most) {
    if (!(candidate.score > best[most - 1].score)) return count;
    count--;
  }
  int i = count;
  for (; i > 0 && candidate.score > best[i - 1].score; i--) best[i] = best[i - 1];
  best[i] = candidate;
  return count + 1;
}

/* The `most` best of one row of logits, the best one first; returns how many there are. */
static int best_logits(const float *logits, int size, int parent, int most, Candidate *best) {
  int count = 0;
  float least = -INFINITY; /* a logit must be larger to be among the best */
  for (int i = 0; i < size; i += LANES) {
    Ints above = *(Floats *)(logits + i) > least;
    int any = 0;
#ifdef __AVX512F__
    any = _mm512_movepi32_mask((__m512i)above);
#else
    any = _mm256_movemask_ps((__m256)above);
#endif
    for (; any; any &= any - 1) { /* for each bit of the mask; this removes the lowest one */
      int token = i + __builtin_ctz(any);
      count = insert(best, count, most, (Candidate){logits[token], parent, token});
      if (count == most) least = best[most - 1].score;
    }
  }
  return count;
}
