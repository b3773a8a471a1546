/* Beam search of nmt/search/beam_search.py over the layers of layers.h: the same rules and scores.
 *
 * All live hypotheses of all sentences are the rows of one step. A sentence has k slots at each
 * position; the keys and values of a slot are never copied, and each hypothesis knows in which slot
 * each position of its past stands. Positions follow one another in memory, so that only as much
 * memory is touched as the longest translation needs, not as the longest one might need.
 */
#include "layers.h"

#define EXPORT __attribute__((visibility("default")))
#define MOST_EXCLUDED 4
#define ROWS_OF_LOGITS 96 /* so many logits fit into the caches, and the matrix is read less often */

typedef struct {
  int32_t beam_size, n_best, early_stopping, min_length, bos, eos;
  int32_t excluded[MOST_EXCLUDED]; /* ids that may not occur; -1: none */
  const float *penalties; /* [length]: the divisor of log P of a translation of so many tokens */
} Search;

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

/* The `most` best tokens of one row of logits; their scores are `score` + log P. */
static int best_tokens(const Model *m, const Search *s, float *logits, int length, float score,
                       int parent, int most, Candidate *best) {
  int size = m->projection.padded;
  Floats maxima = *(Floats *)logits, total = {};
  for (int i = LANES; i < size; i += LANES) maxima = larger(maxima, *(Floats *)(logits + i));
  float largest = max_of(maxima);
  for (int i = 0; i < size; i += LANES) total += exponential(*(Floats *)(logits + i) - largest);
  float log_total = logf(sum_of(total)) + largest;
  for (int i = 0; i < MOST_EXCLUDED; i++)
    if (s->excluded[i] >= 0) logits[s->excluded[i]] = -INFINITY;
  if (length < s->min_length) logits[s->eos] = -INFINITY;
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
  for (int i = 0; i < count; i++) best[i].score = score + (best[i].score - log_total);
  return count;
}

/* Keep an ended hypothesis if it is among the n_best: tokens (n_best, T), lengths and scores. */
static void store_ended(const Search *s, const Sentence *x, const Candidate *ended, int length,
                        int row_size, int32_t *tokens, int32_t *lengths, float *scores) {
  float score = ended->score / s->penalties[length];
  int i = s->n_best - 1;
  if (!(score > scores[i])) return; /* nor is NaN larger */
  for (; i > 0 && score > scores[i - 1]; i--) {
    scores[i] = scores[i - 1];
    lengths[i] = lengths[i - 1];
    memcpy(tokens + i * row_size, tokens + (i - 1) * row_size, row_size * sizeof(int32_t));
  }
  /* The output of step t was the input of step t + 1: it stands at position t + 1, in the slot that
   * the past of the parent names there. The last output has no position; the candidate holds it. */
  const int32_t *past = x->past + ended->parent * row_size;
  int32_t *output = tokens + i * row_size;
  for (int t = 0; t + 1 < length; t++) output[t] = x->tokens[(t + 1) * s->beam_size + past[t + 1]];
  output[length - 1] = ended->token;
  lengths[i] = length - (ended->token == s->eos);
  scores[i] = score;
}

/* Choose the hypotheses of the next step, t + 1, among `count` candidates, best first. A candidate
 * has t + 1 tokens. Those that end are stored in `tokens`, `lengths` and `scores`. */
static void extend(const Search *s, Sentence *x, Candidate *best, int count, int t, int row_size,
                   int32_t *tokens, int32_t *lengths, float *scores) {
  int k = s->beam_size, length = t + 1, live = 0;
  float live_scores[k];
  for (int i = 0; i < count; i++) {
    Candidate *c = &best[i];
    if (c->token == s->eos || length >= x->longest) {
      if (i < k && c->score > -INFINITY) { /* only among the k best, as in beam_search.py */
        x->ended++;
        store_ended(s, x, c, length, row_size, tokens, lengths, scores);
      }
    } else if (live < k && c->score > -INFINITY) {
      /* It continues the past of its parent, positions 0 to t. Its new token is the input of step
       * t + 1 = length, so it stands at that position, in the slot of the new hypothesis: `live`. */
      int32_t *past = x->next_past + live * row_size;
      memcpy(past, x->past + c->parent * row_size, (size_t)length * sizeof(int32_t));
      past[length] = live;
      x->tokens[length * k + live] = c->token;
      x->latest[live] = c->token;
      live_scores[live] = c->score;
      live++;
    }
  }
  memcpy(x->scores, live_scores, live * sizeof(float));
  int32_t *swapped = x->past;
  x->past = x->next_past, x->next_past = swapped;
  x->live = live;
  /* exact: log P only falls, so this bounds the score of all that may still end */
  float bound = live ? live_scores[0] / s->penalties[x->longest] : -INFINITY;
  if (!(bound > scores[s->n_best - 1]) || (s->early_stopping && x->ended >= k)) x->live = 0;
}

/* All memory of one call, taken from one block that is freed at its end. */
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
  Buffers buffers;
  Sentence *sentences;
  Query *queries;
  Candidate *candidates, *best;
  int32_t *row_sentence, *row_slot, *row_counts;
  float *x, *logits, *cache, **memory;
} Work;

/* Divide the block; without a block, count how large it must be. */
static void divide(Memory *block, Work *w, const Model *m, const Search *s, int sentences,
                   int source_rows, int longest, int longest_source) {
  size_t k = s->beam_size, d = m->d_model, steps = (size_t)sentences * k;
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

/* Collect the rows of step t: embed the latest tokens of all live hypotheses. */
static int collect(const Model *m, const Search *s, Work *w, int sentences, int t, int row_size,
                   const int32_t *starts) {
  int rows = 0;
  for (int n = 0; n < sentences; n++) {
    Sentence *x = &w->sentences[n];
    for (int j = 0; j < x->live; j++, rows++) {
      w->row_sentence[rows] = n;
      w->row_slot[rows] = j;
      w->queries[rows] = (Query){.past = x->past + j * row_size,
                                 .past_count = t + 1,
                                 .first_slot = n * s->beam_size,
                                 .first_source = starts[n],
                                 .source_length = starts[n + 1] - starts[n]};
      embed(m, m->target_embedding, x->latest[j], t, m->zero, w->x + (size_t)rows * m->d_model);
    }
  }
  return rows;
}

/* Find the best tokens after each row: up to k + 1 candidates a row. */
static void find_candidates(const Model *m, const Search *s, Work *w, int rows, int length) {
  int most = s->beam_size == 1 ? 1 : s->beam_size + 1;
  for (int first = 0; first < rows; first += ROWS_OF_LOGITS) {
    int count = rows - first < ROWS_OF_LOGITS ? rows - first : ROWS_OF_LOGITS;
    apply(&m->projection, count, w->x + (size_t)first * m->d_model, w->logits, &w->buffers);
    for (int r = first; r < first + count; r++) {
      float *logits = w->logits + (size_t)(r - first) * m->projection.padded;
      int slot = w->row_slot[r];
      float score = w->sentences[w->row_sentence[r]].scores[slot];
      w->row_counts[r] = best_tokens(m, s, logits, length, score, slot, most,
                                     w->candidates + (size_t)r * (s->beam_size + 1));
    }
  }
}

/* Translate sentences n, the source ids starts[n] to before starts[n + 1], to at most longest[n]
 * tokens.
 *
 * tokens (sentences, n_best, row_size), lengths and scores (sentences, n_best) receive the ended
 * hypotheses, best first; a length of -1 says that there is none. row_size is the largest longest.
 * Returns 0, or 1 if the memory does not suffice. */
EXPORT int nmt_translate(const Model *m, const Search *s, int32_t sentences, const int32_t *source,
                  const int32_t *starts, const int32_t *longest, int32_t row_size, int32_t *tokens,
                  int32_t *lengths, float *scores) {
  int k = s->beam_size, kept = s->n_best, longest_source = 0;
  for (int n = 0; n < sentences; n++)
    if (starts[n + 1] - starts[n] > longest_source) longest_source = starts[n + 1] - starts[n];
  Work w;
  Memory block = {0};
  /* first without memory, to learn how much is needed */
  divide(&block, &w, m, s, sentences, starts[sentences], row_size, longest_source);
  block.size = block.used, block.used = 0;
  if (!(block.block = aligned_alloc(64, block.size))) return 1;
  divide(&block, &w, m, s, sentences, starts[sentences], row_size, longest_source);

  encode(m, sentences, source, starts, w.x, &w.buffers);
  for (int l = 0; l < m->decoder_layers; l++)
    apply(&m->decoder[l].cross_key_value, starts[sentences], w.x, w.memory[l], &w.buffers);
  for (int n = 0; n < sentences; n++) {
    Sentence *x = &w.sentences[n];
    x->longest = longest[n], x->live = 1, x->ended = 0;
    x->scores[0] = 0.0f, x->latest[0] = s->bos, x->past[0] = 0;
    for (int i = 0; i < kept; i++) scores[n * kept + i] = -INFINITY, lengths[n * kept + i] = -1;
  }
  for (int t = 0; t < row_size; t++) {
    int rows = collect(m, s, &w, sentences, t, row_size, starts);
    if (!rows) break;
    decode(m, rows, w.queries, sentences * k, w.cache, w.memory, w.x, &w.buffers);
    find_candidates(m, s, &w, rows, t);
    for (int r = 0; r < rows;) { /* the rows of one sentence at a time: merge their candidates */
      int n = w.row_sentence[r], count = 0;
      for (; r < rows && w.row_sentence[r] == n; r++)
        for (int i = 0; i < w.row_counts[r]; i++)
          count = insert(w.best, count, k == 1 ? 1 : 2 * k, w.candidates[(size_t)r * (k + 1) + i]);
      extend(s, &w.sentences[n], w.best, count, t, row_size, tokens + (size_t)n * kept * row_size,
             lengths + n * kept, scores + n * kept);
    }
  }
  free(block.block);
#ifdef __AMX_INT8__
  if (may_use_tiles) _tile_release();
#endif
  return 0;
}

EXPORT void nmt_positions(const Model *m, int32_t length, int32_t kind) {
  fill_positions(m, length, kind);
}

/* Outputs in a panel: the caller stores matrices accordingly. */
EXPORT int nmt_panel(void) { return PANEL; }

/* Floats in a register: the widths of heads are multiples of it. */
EXPORT int nmt_lanes(void) { return LANES; }
