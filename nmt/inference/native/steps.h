/* Single steps of the decoder, for a search in Python that chooses the hypotheses. */
typedef struct {
  const Model *model;
  const float *word_ends; /* (padded) 0 for a token before which a word is complete, otherwise -inf */
  Work work;
  int32_t sentences, longest; /* longest: the most tokens of a hypothesis */
  int32_t step; /* steps so far */
} Steps;

EXPORT void nmt_finish(Steps *steps) {
  free(steps->work.arena.start);
  free(steps);
}

/* Begin to decode, see `begin`. The caller keeps the sources and `word_ends`, see Steps. Returns NULL
 * if the memory does not suffice. */
EXPORT Steps *nmt_start(const Model *m, const float *word_ends, int32_t k, const Sources *sources,
                        int32_t sentences, const int32_t *chosen, int32_t longest) {
  Steps *steps = calloc(1, sizeof(Steps));
  if (!steps) return NULL;
  steps->model = m, steps->word_ends = word_ends, steps->sentences = sentences;
  steps->longest = longest;
  if (begin(&steps->work, m, k, sources, sentences, chosen, longest)) {
    free(steps);
    return NULL;
  }
  return steps;
}

/* Let each row continue the past of its sentence's row parent[r] of the last step, and embed it. */
static void continue_rows(Steps *steps, int rows, const int32_t *row_sentence,
                          const int32_t *parent, const int32_t *token, int records) {
  const Model *m = steps->model;
  Work *w = &steps->work;
  int t = steps->step, slot = 0;
  for (int r = 0; r < rows; r++) {
    int n = row_sentence[r];
    Sentence *sentence = &w->sentences[n];
    slot = r && row_sentence[r - 1] == n ? slot + 1 : 0;
    int32_t *past = sentence->next_past + slot * (size_t)steps->longest;
    memcpy(past, sentence->past + parent[r] * (size_t)steps->longest, t * sizeof(int32_t));
    past[t] = slot;
    fill_row(m, w, r, n, past, t, token[r]);
    if (records) w->queries[r].weights = w->weights + (size_t)r * w->longest_source;
  }
  for (int r = 0; r < rows; r++) /* once for each sentence */
    if (!r || row_sentence[r - 1] != row_sentence[r]) swap_past(&w->sentences[row_sentence[r]]);
}

/* Find the `most` most probable tokens of one row of logits (size) and their log P, the best one
 * first. Where fewer than that are above -inf, token 0 and -inf stand for the others. */
static void store_best(const float *logits, int size, float log_total, int32_t most,
                       int32_t *tokens, float *log_p) {
  Candidate best[most];
  int count = best_logits(logits, size, 0, most, best);
  for (int i = 0; i < most; i++) {
    tokens[i] = i < count ? best[i].token : 0;
    log_p[i] = i < count ? best[i].score - log_total : -INFINITY;
  }
}

/* Return the maximum of row[i] + addends[i]. */
static float largest_sum(const float *row, const float *addends, int size) {
  Floats most = *(Floats *)row + *(Floats *)addends;
  for (int i = LANES; i < size; i += LANES)
    most = larger(most, *(Floats *)(row + i) + *(Floats *)(addends + i));
  return max_of(most);
}

/* Compute the next step of `rows` hypotheses, those of a sentence side by side.
 *
 * row_sentence, parent and token (rows) say which sentence they belong to, which of its rows of the
 * last step they continue, and their last token. best_tokens and best_log_p (rows, most) get the
 * `most` most probable next tokens and their log P, see `store_best`. end_log_p (rows) gets log P of
 * the most probable token before which a word is complete. asked_log_p (asked) gets log P of token
 * asked_token[i] after row asked_row[i]. attended (rows) gets the source position, EOS excluded, with
 * the most attention of each row; it may be NULL.
 * Returns 0, or 1 if a score is NaN or infinite. */
EXPORT int nmt_step(Steps *steps, int32_t rows, const int32_t *row_sentence, const int32_t *parent,
                    const int32_t *token, int32_t most, int32_t *best_tokens, float *best_log_p,
                    float *end_log_p, int32_t asked, const int32_t *asked_row,
                    const int32_t *asked_token, float *asked_log_p, int32_t *attended) {
  const Model *m = steps->model;
  Work *w = &steps->work;
  int size = m->projection.padded, failed = 0;
  float log_totals[ROWS_OF_LOGITS];
  if (attended) memset(w->weights, 0, (size_t)rows * w->longest_source * sizeof(float));
  continue_rows(steps, rows, row_sentence, parent, token, attended != NULL);
  decode(m, rows, w->queries, steps->sentences * w->k, w->cache, w->memory, w->x, &w->buffers);
  for (int first = 0; first < rows; first += ROWS_OF_LOGITS) {
    int count = rows - first < ROWS_OF_LOGITS ? rows - first : ROWS_OF_LOGITS;
    apply(&m->projection, count, w->x + (size_t)first * m->d_model, w->logits, &w->buffers);
    for (int r = first; r < first + count; r++) {
      const float *logits = w->logits + (size_t)(r - first) * size;
      float log_total = log_totals[r - first] = log_sum(logits, size);
      failed |= !isfinite(log_total);
      /* now, while the row is in the first-level cache */
      store_best(logits, size, log_total, most, best_tokens + r * (size_t)most,
                 best_log_p + r * (size_t)most);
      end_log_p[r] = largest_sum(logits, steps->word_ends, size) - log_total;
    }
    for (int i = 0; i < asked; i++) {
      int r = asked_row[i] - first;
      if (r >= 0 && r < count)
        asked_log_p[i] = w->logits[(size_t)r * size + asked_token[i]] - log_totals[r];
    }
  }
  for (int r = 0; attended && r < rows; r++) {
    const float *weights = w->queries[r].weights;
    attended[r] = 0;
    for (int i = 1; i < w->queries[r].source_length - 1; i++)
      if (weights[i] > weights[attended[r]]) attended[r] = i;
  }
  steps->step++;
  release_tiles();
  return failed;
}

/* Compute log P (count, padded) of all tokens after these rows of the last step. */
EXPORT void nmt_log_p(Steps *steps, int32_t count, const int32_t *rows, float *log_p) {
  const Model *m = steps->model;
  Work *w = &steps->work;
  float *x = w->buffers.normalized;
  for (int i = 0; i < count; i++)
    memcpy(x + (size_t)i * m->d_model, w->x + (size_t)rows[i] * m->d_model,
           m->d_model * sizeof(float));
  apply(&m->projection, count, x, log_p, &w->buffers);
  for (int size = m->projection.padded; count > 0; count--, log_p += size) {
    float log_total = log_sum(log_p, size);
    for (int i = 0; i < size; i += LANES) *(Floats *)(log_p + i) -= log_total;
  }
  release_tiles();
}
