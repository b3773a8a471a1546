/* The softmax of section 5.4's loss and its gradient, a row of logits at a time in the caches. */
typedef struct {
  int32_t rows, entries;
  float q_target, q_other; /* the smoothed distribution: of the target, and of each other entry */
  const int64_t *targets; /* (rows) */
  const uint8_t *is_real; /* (rows): other rows have no loss, and zeros for a gradient */
} Targets;

/* The logits of a row as floats, followed by very small ones; their sum; returns the largest. */
INLINE float load_logits(const Number *logits, int entries, float *row, float *sum_of_logits) {
  Floats most = all_floats(-INFINITY), sum = {};
  int whole = entries / LANES * LANES;
  Number rest[LANES];
  for (int i = 0; i < LANES; i++) rest[i] = i < entries - whole ? logits[whole + i] : 0;
  for (int i = 0; i < whole; i += LANES) {
    Floats x = *(Floats *)(row + i) = load(logits + i);
    most = larger(most, x);
    sum += x;
  }
  Floats last = load(rest);
  *sum_of_logits = sum_of(sum + last);
  for (int i = entries - whole; i < LANES; i++) last[i] = -1e30f;
  if (whole < entries) *(Floats *)(row + whole) = last;
  return max_of(larger(most, last));
}

/* Overwrite logits (rows, entries) by the gradient p - q of their loss. The loss, with and without
 * smoothing, is added to losses[0] and losses[1]. `row` has space for entries + LANES floats. */
EXPORT void nmt_cross_entropy(const Targets *t, Number *logits, float *row, double *losses) {
  int entries = t->entries, whole = entries / LANES * LANES;
  for (int r = 0; r < t->rows; r++, logits += entries) {
    if (!t->is_real[r]) {
      memset(logits, 0, entries * sizeof *logits);
      continue;
    }
    float sum_of_logits, largest = load_logits(logits, entries, row, &sum_of_logits);
    float target_logit = row[t->targets[r]];
    Floats sum = {};
    for (int i = 0; i < entries; i += LANES)
      sum += *(Floats *)(row + i) = exponential(*(Floats *)(row + i) - largest);
    float total = sum_of(sum), inverse = 1.0f / total, log_z = largest + logf(total);
    losses[0] += log_z - t->q_target * target_logit - t->q_other * (sum_of_logits - target_logit);
    losses[1] += log_z - target_logit;
    row[t->targets[r]] -= (t->q_target - t->q_other) * total;
    for (int i = 0; i < whole; i += LANES)
      store(logits + i, *(Floats *)(row + i) * inverse - t->q_other);
    Number rest[LANES];
    store(rest, *(Floats *)(row + whole) * inverse - t->q_other);
    memcpy(logits + whole, rest, (entries - whole) * sizeof *logits);
  }
}
