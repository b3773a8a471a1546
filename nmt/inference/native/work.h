/* What beam search and single steps share: memory for hypotheses, their past and the layers of
 * layers.h, the encoded sources, and the best of a row of logits.
 *
 * All live hypotheses of all sentences are the rows of one step. A sentence has k slots at each
 * position; the keys and values of a slot are never copied, and each hypothesis knows in which slot
 * each position of its past stands. Positions follow one another in memory, so that only as much
 * memory is touched as the longest translation needs, not as the longest one might need.
 *
 * Short names: m model, s settings of the search, w work, n sentence, r row, t step or position,
 * k slots of a sentence (the beam), l layer.
 */
#include "layers.h"

#define ROWS_OF_LOGITS 96 /* so many logits fit into the caches, and the matrix is read less often */

typedef struct {
  float score; /* log P of the hypothesis; until the end of `best_tokens` the logit of the token */
  int32_t parent, token;
} Candidate;

/* T: the most tokens of any translation of the batch, EOS included. */
typedef struct {
  int32_t first_source, source_length; /* its rows of the encoded sources */
  int32_t longest; /* tokens that its translation may have, EOS included */
  int32_t begin; /* the token that its translation begins with; -1: any */
  int32_t live; /* hypotheses; 0: the sentence is done */
  int32_t ended; /* hypotheses that have ended so far, kept or not */
  float *scores; /* (k) log P of the live ones */
  int32_t *latest; /* (k) their last tokens */
  int32_t *past, *next_past; /* (k, T) the slots of their past; the second for the next step */
  int32_t *tokens; /* (T + 1, k) the token in each slot, at position t the input of step t */
} Sentence;

/* One block, from which all memory of a search is taken; it is freed at the end. */
typedef struct {
  char *start;
  size_t used;
} Arena;

static void *take(Arena *arena, size_t bytes) {
  void *taken = arena->start ? arena->start + arena->used : NULL;
  arena->used += (bytes + 63) / 64 * 64;
  return taken;
}

/* Encoded sentences, which several searches may share; sentence n has the source ids starts[n] to
 * before starts[n + 1]. */
typedef struct {
  Arena arena;
  int32_t *starts;
  float **memory; /* [decoder layer]: keys and values of the sources (source ids, 2 * d_model) */
} Sources;

typedef struct {
  Arena arena;
  Buffers buffers;
  Sentence *sentences;
  Query *queries;
  Candidate *candidates, *best;
  int32_t *row_sentence, *row_slot, *row_counts;
  float *x, *logits; /* (rows, d_model), (ROWS_OF_LOGITS, padded) */
  float *cache; /* (T, decoder layers, sentences * k, 2 * d_model), see `decode` */
  float **memory; /* that of the encoded sources */
  float *weights; /* (sentences * k, longest_source) attention of each row, the sum over the heads */
  int32_t k, longest_source;
} Work;

/* Take buffers for so many rows, each of which attends to `attended` positions at most. */
static void take_buffers(Arena *arena, Buffers *b, const Model *m, size_t rows, size_t attended) {
  size_t d = m->d_model, wide = m->d_ff > 3 * m->d_model ? (size_t)m->d_ff : 3 * d;
  b->normalized = take(arena, rows * d * 4);
  b->projected = take(arena, rows * 3 * d * 4);
  b->attended = take(arena, rows * d * 4);
  b->hidden = take(arena, (m->encoder->gate.panels ? 2 : 1) * rows * m->d_ff * 4);
  b->result = take(arena, rows * d * 4);
  b->scores = take(arena, (attended + LANES) * 4);
  b->x_scales = take(arena, rows * 4);
  b->bytes = take(arena, (rows + PADDING_ROWS) * wide);
}

/* Turn an arena that has only counted bytes into memory; returns 0 if there is not enough. */
static int allocate(Arena *arena) {
  arena->start = aligned_alloc(64, arena->used);
  arena->used = 0;
  return arena->start != NULL;
}

EXPORT void nmt_free_sources(Sources *sources) {
  free(sources->arena.start);
  free(sources);
}

/* Give each part of `sources` its place in the arena. Without memory, the arena only counts. */
static void divide_sources(Sources *sources, const Model *m, int sentences, int rows) {
  Arena *arena = &sources->arena;
  sources->starts = take(arena, (sentences + 1) * 4);
  sources->memory = take(arena, m->decoder_layers * sizeof(float *));
  for (int l = 0; l < m->decoder_layers; l++) {
    float *memory = take(arena, (size_t)rows * 2 * m->d_model * 4);
    if (arena->start) sources->memory[l] = memory;
  }
}

/* Encode sentences n, the source ids starts[n] to before starts[n + 1], and project what hypotheses
 * will attend to. Returns NULL if the memory does not suffice. */
EXPORT Sources *nmt_encode(const Model *m, int32_t sentences, const int32_t *source,
                           const int32_t *starts) {
  int rows = starts[sentences];
  Sources *sources = calloc(1, sizeof(Sources));
  Arena temporary = {0};
  Buffers b;
  float *x = NULL;
  for (int pass = 0; sources && pass < 2; pass++) { /* the first one learns how much is needed */
    if (pass && !(allocate(&sources->arena) && allocate(&temporary))) {
      nmt_free_sources(sources);
      sources = NULL;
      break;
    }
    divide_sources(sources, m, sentences, rows);
    take_buffers(&temporary, &b, m, rows, rows);
    x = take(&temporary, (size_t)rows * m->d_model * 4);
  }
  if (sources) {
    memcpy(sources->starts, starts, (sentences + 1) * sizeof(int32_t));
    encode(m, sentences, source, starts, x, &b);
    for (int l = 0; l < m->decoder_layers; l++)
      apply(&m->decoder[l].cross_key_value, rows, x, sources->memory[l], &b);
    release_tiles();
  }
  free(temporary.start);
  return sources;
}

/* Give each part of `w` its place in the arena. Without memory, the arena only counts the bytes. */
static void divide(Work *w, const Model *m, int sentences, int longest) {
  Arena *arena = &w->arena;
  size_t k = w->k, longest_source = w->longest_source, rows = (size_t)sentences * k;
  size_t d = m->d_model;
  take_buffers(arena, &w->buffers, m, rows,
               longest > w->longest_source ? longest : w->longest_source);
  w->x = take(arena, rows * d * 4);
  w->logits = take(arena, (size_t)ROWS_OF_LOGITS * m->projection.padded * 4);
  w->queries = take(arena, rows * sizeof(Query));
  w->row_sentence = take(arena, rows * 4);
  w->row_slot = take(arena, rows * 4);
  w->row_counts = take(arena, rows * 4);
  w->candidates = take(arena, rows * (k + 1) * sizeof(Candidate));
  w->best = take(arena, 2 * k * sizeof(Candidate));
  w->weights = take(arena, rows * longest_source * 4);
  w->sentences = take(arena, sentences * sizeof(Sentence));
  for (int n = 0; n < sentences; n++) {
    Sentence sentence = {0};
    sentence.scores = take(arena, k * 4);
    sentence.latest = take(arena, k * 4);
    sentence.past = take(arena, k * longest * 4);
    sentence.next_past = take(arena, k * longest * 4);
    sentence.tokens = take(arena, k * (longest + 1) * 4);
    if (arena->start) w->sentences[n] = sentence;
  }
  w->cache = take(arena, (size_t)longest * m->decoder_layers * rows * 2 * d * 4); /* the last one */
}

/* Begin to decode sentences chosen[n] of the sources, k hypotheses of at most `longest` tokens each.
 * Returns 0, or 1 if the memory does not suffice. */
static int begin(Work *w, const Model *m, int k, const Sources *sources, int sentences,
                 const int32_t *chosen, int longest) {
  const int32_t *starts = sources->starts;
  *w = (Work){.k = k, .memory = sources->memory};
  for (int n = 0; n < sentences; n++) {
    int length = starts[chosen[n] + 1] - starts[chosen[n]];
    if (length > w->longest_source) w->longest_source = length;
  }
  divide(w, m, sentences, longest); /* first without memory, to learn how much is needed */
  if (!allocate(&w->arena)) return 1;
  divide(w, m, sentences, longest);
  for (int n = 0; n < sentences; n++) {
    w->sentences[n].first_source = starts[chosen[n]];
    w->sentences[n].source_length = starts[chosen[n] + 1] - starts[chosen[n]];
  }
  return 0;
}

/* Put a hypothesis of sentence n into the row of step t: embed its last token. `past` has the slots
 * of positions 0 to t. */
static void fill_row(const Model *m, Work *w, int row, int n, const int32_t *past, int t,
                     int32_t token) {
  w->queries[row] = (Query){.past = past,
                            .past_count = t + 1,
                            .first_slot = n * w->k,
                            .first_source = w->sentences[n].first_source,
                            .source_length = w->sentences[n].source_length};
  embed(m, m->target_embedding, token, t, m->zero, w->x + (size_t)row * m->d_model);
}

/* Exchange the past of a sentence's hypotheses for that of the next step. */
static void swap_past(Sentence *sentence) {
  int32_t *swapped = sentence->past;
  sentence->past = sentence->next_past, sentence->next_past = swapped;
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
    int above = bits_of(*(Floats *)(logits + i) > least);
    for (; above; above &= above - 1) { /* for each bit; this removes the lowest one */
      int token = i + __builtin_ctz(above);
      count = insert(best, count, most, (Candidate){logits[token], parent, token});
      if (count == most) least = best[most - 1].score;
    }
  }
  return count;
}
