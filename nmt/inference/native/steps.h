/* Single steps of the decoder, for a search in Python that chooses the hypotheses. */
typedef struct {
  const Model *model;
  Work work;
  int32_t sentences, longest; /* longest: the most tokens of a hypothesis */
  int32_t step; /* steps so far */
} Steps;

EXPORT void nmt_finish(Steps *steps) {
  free(steps->work.arena.start);
  free(steps);
}

/* Encode the sentences, as `begin`. Returns NULL if the memory does not suffice. */
EXPORT Steps *nmt_start(const Model *m, int32_t k, int32_t sentences, const int32_t *source,
                        const int32_t *starts, int32_t longest) {
  Steps *steps = calloc(1, sizeof(Steps));
  if (!steps) return NULL;
  steps->model = m, steps->sentences = sentences, steps->longest = longest;
  if (begin(&steps->work, m, k, sentences, source, starts, longest)) {
    free(steps);
    return NULL;
  }
  release_tiles();
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
    int32_t *past = sentence->next_past + slot * steps->longest;
    memcpy(past, sentence->past + parent[r] * steps->longest, t * sizeof(int32_t));
    past[t] = slot;
    fill_row(m, w, r, n, past, t, token[r]);
    if (records) w->queries[r].weights = w->weights + (size_t)r * w->longest_source;
  }
  for (int r = 0; r < rows; r++) /* once for each sentence */
    if (!r || row_sentence[r - 1] != row_sentence[r]) swap_past(&w->sentences[row_sentence[r]]);
}

/* Find the `most` most probable tokens of one row of log_p (size), the best one first. Where fewer than
 * that are above -inf, token 0 and -inf stand for the others. */
static void store_best(const float *log_p, int size, int32_t most, int32_t *tokens, float *values) {
  Candidate best[most];
  int count = best_logits(log_p, size, 0, most, best);
  for (int i = 0; i < most; i++) {
    tokens[i] = i < count ? best[i].token : 0;
    values[i] = i < count ? best[i].score : -INFINITY;
  }
}

/* Compute the next step of `rows` hypotheses, those of a sentence side by side.
 *
 * row_sentence, parent and token (rows) say which sentence they belong to, which of its rows of the
 * last step they continue, and their last token. log_p (rows, padded) gets log P of each next token;
 * best_tokens and best_log_p (rows, most) get the `most` most probable tokens and their log P, see
 * `store_best`. attended (rows) gets the source position, EOS excluded, with the most attention of
 * each row; it may be NULL.
 * Returns 0, or 1 if a score is NaN or infinite. */
EXPORT int nmt_step(Steps *steps, int32_t rows, const int32_t *row_sentence, const int32_t *parent,
                    const int32_t *token, int32_t most, float *log_p, int32_t *best_tokens,
                    float *best_log_p, int32_t *attended) {
  const Model *m = steps->model;
  Work *w = &steps->work;
  int size = m->projection.padded, failed = 0;
  if (attended) memset(w->weights, 0, (size_t)rows * w->longest_source * sizeof(float));
  continue_rows(steps, rows, row_sentence, parent, token, attended != NULL);
  decode(m, rows, w->queries, steps->sentences * w->k, w->cache, w->memory, w->x, &w->buffers);
  for (int first = 0; first < rows; first += ROWS_OF_LOGITS) {
    int count = rows - first < ROWS_OF_LOGITS ? rows - first : ROWS_OF_LOGITS;
    float *logits = log_p + (size_t)first * size;
    apply(&m->projection, count, w->x + (size_t)first * m->d_model, logits, &w->buffers);
    for (int r = first; r < first + count; r++, logits += size) {
      float log_total = log_sum(logits, size);
      failed |= !isfinite(log_total);
      for (int i = 0; i < size; i += LANES) *(Floats *)(logits + i) -= log_total;
      /* now, while the row is in the first-level cache */
      store_best(logits, size, most, best_tokens + r * most, best_log_p + r * most);
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
