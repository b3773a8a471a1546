/* Beam search of nmt/search/beam_search.py over the layers of layers.h: the same rules and scores. */
#define MAX_EXCLUDED 4

typedef struct {
  int32_t beam_size, n_best, early_stopping, min_length, no_repeat_ngram, bos, eos;
  int32_t excluded[MAX_EXCLUDED]; /* ids that may not occur; -1: none */
  const float *penalties; /* [length]: the divisor of log P of a translation of so many tokens */
} Search;

/* Token i of a live hypothesis. The output of step t was the input of step t + 1: it stands at
 * position t + 1, in the slot that the past of the hypothesis names there. Such as, for k = 2, after
 * step 0 has found a and b, and step 1 both c and d as continuations of b:
 *
 *     position   0    1  2
 *     slot 0     BOS  a  c     hypothesis 0: past 0 1 0, output b c
 *     slot 1          b  d     hypothesis 1: past 0 1 1, output b d
 */
INLINE int32_t output_token(const Search *s, const Sentence *sentence, const int32_t *past, int i) {
  return sentence->tokens[(i + 1) * (size_t)s->beam_size + past[i + 1]];
}

/* Forbid the tokens after which no_repeat_ngram tokens would stand there twice. */
static void forbid_repetitions(const Search *s, const Sentence *sentence, const int32_t *past,
                               int length, float *logits) {
  int before = s->no_repeat_ngram - 1; /* so many latest tokens, and the next one, are compared */
  for (int i = 0; i + before < length; i++) {
    int j = 0;
    while (j < before && output_token(s, sentence, past, i + j) ==
                             output_token(s, sentence, past, length - before + j))
      j++;
    if (j == before) logits[output_token(s, sentence, past, i + before)] = -INFINITY;
  }
}

/* The `most` best tokens after one hypothesis with `length` tokens, given their logits; their scores
 * are log P with that of the hypothesis. Where the rules forbid all tokens, EOS is allowed. */
static int best_tokens(const Model *m, const Search *s, const Sentence *sentence, int slot,
                       float *logits, int length, int row_size, int most, Candidate *best) {
  int size = m->projection.padded;
  const int32_t *past = sentence->past + slot * (size_t)row_size;
  if (!length && sentence->begin >= 0) { /* given, so its P is 1 */
    best[0] = (Candidate){sentence->scores[slot], slot, sentence->begin};
    return 1;
  }
  float log_total = log_sum(logits, size), eos_logit = logits[s->eos];
  for (int i = 0; i < MAX_EXCLUDED; i++)
    if (s->excluded[i] >= 0) logits[s->excluded[i]] = -INFINITY;
  if (s->no_repeat_ngram) forbid_repetitions(s, sentence, past, length, logits);
  if (length < s->min_length) logits[s->eos] = -INFINITY;
  int count = best_logits(logits, size, slot, most, best);
  if (!count && eos_logit > -INFINITY) best[count++] = (Candidate){eos_logit, slot, s->eos};
  for (int i = 0; i < count; i++)
    best[i].score = sentence->scores[slot] + (best[i].score - log_total);
  return count;
}

/* Keep an ended hypothesis if it is among the n_best: tokens (n_best, T), lengths and scores. */
static void store_ended(const Search *s, const Sentence *sentence, const Candidate *ended,
                        int length, int row_size, int32_t *tokens, int32_t *lengths,
                        float *scores) {
  float score = ended->score / s->penalties[length];
  size_t width = row_size;
  int i = s->n_best - 1;
  if (!(score > scores[i])) return; /* nor is NaN larger */
  for (; i > 0 && score > scores[i - 1]; i--) {
    scores[i] = scores[i - 1];
    lengths[i] = lengths[i - 1];
    memcpy(tokens + i * width, tokens + (i - 1) * width, width * sizeof(int32_t));
  }
  const int32_t *past = sentence->past + ended->parent * width;
  int32_t *output = tokens + i * width;
  for (int t = 0; t + 1 < length; t++) output[t] = output_token(s, sentence, past, t);
  output[length - 1] = ended->token; /* it has no position; the candidate holds it */
  lengths[i] = length - (ended->token == s->eos);
  scores[i] = score;
}

/* Choose the hypotheses of the next step, t + 1, among `count` candidates, best first. A candidate
 * has t + 1 tokens. Those that end are stored in `tokens`, `lengths` and `scores`. */
static void extend(const Search *s, Sentence *sentence, Candidate *best, int count, int t,
                   int row_size, int32_t *tokens, int32_t *lengths, float *scores) {
  size_t k = s->beam_size, width = row_size;
  int length = t + 1, live = 0;
  for (int i = 0; i < count; i++) {
    Candidate *c = &best[i];
    if (c->token == s->eos || length >= sentence->longest) {
      if (i < s->beam_size && c->score > -INFINITY) { /* only among the k best, as in beam_search.py */
        sentence->ended++;
        store_ended(s, sentence, c, length, row_size, tokens, lengths, scores);
      }
    } else if (live < s->beam_size && c->score > -INFINITY) {
      /* It continues the past of its parent, positions 0 to t. Its new token is the input of step
       * t + 1 = length, so it stands at that position, in the slot of the new hypothesis: `live`. */
      int32_t *past = sentence->next_past + live * width;
      memcpy(past, sentence->past + c->parent * width, length * sizeof(int32_t));
      past[length] = live;
      sentence->tokens[length * k + live] = c->token;
      sentence->latest[live] = c->token;
      sentence->scores[live] = c->score; /* that of its parent is in `best` already */
      live++;
    }
  }
  swap_past(sentence);
  sentence->live = live;
  /* exact: log P only falls, so this bounds the score of all that may still end */
  float bound = live ? sentence->scores[0] / s->penalties[sentence->longest] : -INFINITY;
  int is_done = !(bound > scores[s->n_best - 1]); /* NaN ends the search, too */
  if (s->early_stopping && sentence->ended >= s->beam_size) is_done = 1;
  if (is_done) sentence->live = 0;
}

/* Collect the rows of step t: embed the latest tokens of all live hypotheses. */
static int collect(const Model *m, Work *w, int sentences, int t, int row_size) {
  int rows = 0;
  for (int n = 0; n < sentences; n++) {
    Sentence *sentence = &w->sentences[n];
    for (int j = 0; j < sentence->live; j++, rows++) {
      w->row_sentence[rows] = n;
      w->row_slot[rows] = j;
      fill_row(m, w, rows, n, sentence->past + j * (size_t)row_size, t, sentence->latest[j]);
    }
  }
  return rows;
}

/* Find the best tokens after each row: up to k + 1 candidates a row. */
static void find_candidates(const Model *m, const Search *s, Work *w, int rows, int length,
                            int row_size) {
  int most = s->beam_size == 1 ? 1 : s->beam_size + 1;
  for (int first = 0; first < rows; first += ROWS_OF_LOGITS) {
    int count = rows - first < ROWS_OF_LOGITS ? rows - first : ROWS_OF_LOGITS;
    apply(&m->projection, count, w->x + (size_t)first * m->d_model, w->logits, &w->buffers);
    for (int r = first; r < first + count; r++) {
      float *logits = w->logits + (size_t)(r - first) * m->projection.padded;
      const Sentence *sentence = &w->sentences[w->row_sentence[r]];
      w->row_counts[r] = best_tokens(m, s, sentence, w->row_slot[r], logits, length, row_size, most,
                                     w->candidates + (size_t)r * (s->beam_size + 1));
    }
  }
}

/* Translate sentences chosen[n] of the sources, each to at most longest[n] tokens, the first of which
 * is begins[n] if that is not -1.
 *
 * tokens (sentences, n_best, row_size), lengths and scores (sentences, n_best) receive the ended
 * hypotheses, best first; a length of -1 says that there is none. row_size is the largest longest.
 * Returns 0, or 1 if the memory does not suffice. It ends at the next step, without all hypotheses,
 * once *is_cancelled is not 0, which another thread may set. */
EXPORT int nmt_translate(const Model *m, const Search *s, const Sources *sources, int32_t sentences,
                         const int32_t *chosen, const int32_t *longest, const int32_t *begins,
                         int32_t row_size,
                         int32_t *tokens, int32_t *lengths, float *scores,
                         const volatile int32_t *is_cancelled) {
  int k = s->beam_size;
  size_t kept = s->n_best;
  Work w;
  if (begin(&w, m, k, sources, sentences, chosen, row_size)) return 1;
  for (int n = 0; n < sentences; n++) {
    Sentence *sentence = &w.sentences[n];
    sentence->longest = longest[n], sentence->begin = begins[n];
    sentence->live = 1, sentence->ended = 0;
    sentence->scores[0] = 0.0f, sentence->latest[0] = s->bos, sentence->past[0] = 0;
  }
  for (size_t i = 0; i < sentences * kept; i++) scores[i] = -INFINITY, lengths[i] = -1;
  for (int t = 0; t < row_size && !*is_cancelled; t++) {
    int rows = collect(m, &w, sentences, t, row_size);
    if (!rows) break;
    decode(m, rows, w.queries, sentences * k, w.cache, w.memory, w.x, &w.buffers);
    find_candidates(m, s, &w, rows, t, row_size);
    for (int r = 0; r < rows;) { /* the rows of one sentence at a time: merge their candidates */
      int n = w.row_sentence[r], count = 0;
      for (; r < rows && w.row_sentence[r] == n; r++)
        for (int i = 0; i < w.row_counts[r]; i++)
          count = insert(w.best, count, k == 1 ? 1 : 2 * k, w.candidates[(size_t)r * (k + 1) + i]);
      extend(s, &w.sentences[n], w.best, count, t, row_size, tokens + n * kept * row_size,
             lengths + n * kept, scores + n * kept);
    }
  }
  free(w.arena.start);
  release_tiles();
  return 0;
}
