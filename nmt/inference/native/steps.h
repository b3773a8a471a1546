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

/* Compute the next step of `rows` hypotheses, those of a sentence side by side.
 *
 * row_sentence, parent and token (rows) say which sentence they belong to, which of its rows of the
 * last step they continue, and their last token. log_p (rows, padded) gets log P of each next token.
 * attended (rows) gets the source position, EOS excluded, with the most attention of each row; it may
 * be NULL.
 * Returns 0, or 1 if a score is NaN or infinite. */
EXPORT int nmt_step(Steps *steps, int32_t rows, const int32_t *row_sentence, const int32_t *parent,
                    const int32_t *token, float *log_p, int32_t *attended) {
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
    for (int r = 0; r < count; r++, logits += size) {
      float log_total = log_sum(logits, size);
      failed |= !isfinite(log_total);
      for (int i = 0; i < size; i += LANES) *(Floats *)(logits + i) -= log_total;
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

/* Find the `most` largest of each row of log_p (rows, padded), the largest first, and their columns.
 * Where a row has fewer than that above -inf, column 0 and -inf stand for the others. */
EXPORT void nmt_largest(const Model *m, const float *log_p, int32_t rows, int32_t most,
                        int32_t *indices, float *values) {
  int size = m->projection.padded;
  Candidate best[most];
  for (int r = 0; r < rows; r++, indices += most, values += most) {
    int count = best_logits(log_p + (size_t)r * size, size, 0, most, best);
    for (int i = 0; i < most; i++) {
      indices[i] = i < count ? best[i].token : 0;
      values[i] = i < count ? best[i].score : -INFINITY;
    }
  }
}
