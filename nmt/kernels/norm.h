/* The end of a sub-layer, LayerNorm(x + Dropout(f)), row by row in one pass, and its gradients. */
typedef struct {
  int32_t rows, width;
  int32_t lowest_kept; /* what has a level less than this is dropped */
  int32_t is_rms; /* RMSNorm: no mean is subtracted */
  float scale; /* of what is kept */
  float epsilon;
} Norm;

/* Dropout of LANES numbers with these random levels; if they are NULL, nothing is dropped. */
INLINE Floats drop(const Norm *n, Floats f, const int16_t *levels, size_t i) {
  if (!levels) return f;
  Ints is_kept = load_int16(levels + i) >= n->lowest_kept;
  return (Floats)((Ints)f & is_kept) * n->scale;
}

/* (x - mean) / standard deviation of a row: the mean and the factor that stands for the division. */
typedef struct {
  float mean, inverse;
} Moments;

INLINE Moments moments(const Norm *n, const Number *row) {
  Floats sum = {}, squares = {};
  for (int i = 0; i < n->width; i += LANES) sum += load(row + i);
  float mean = n->is_rms ? 0.0f : sum_of(sum) / n->width;
  for (int i = 0; i < n->width; i += LANES) {
    Floats centred = load(row + i) - mean;
    squares += centred * centred;
  }
  return (Moments){mean, 1.0f / sqrtf(sum_of(squares) / n->width + n->epsilon)};
}

/* sum = x + Dropout(f), y = LayerNorm(sum), all (rows, width); gain and bias are (width). */
EXPORT void nmt_add_norm(const Norm *n, const Number *x, const Number *f, const int16_t *levels,
                         const float *gain, const float *bias, Number *sum, Number *y) {
  for (int r = 0; r < n->rows; r++) {
    size_t row = (size_t)r * n->width;
    for (size_t i = row; i < row + n->width; i += LANES)
      store(sum + i, load(x + i) + drop(n, load(f + i), levels, i));
    Moments m = moments(n, sum + row);
    for (int i = 0; i < n->width; i += LANES) {
      Floats normal = (load(sum + row + i) - m.mean) * m.inverse;
      store(y + row + i, normal * *(Floats *)(gain + i) + *(Floats *)(bias + i));
    }
  }
}

/* The gradients of x, f, gain and bias for that of y. The last two are added to what is there. */
EXPORT void nmt_add_norm_gradients(const Norm *n, const Number *sum, const int16_t *levels,
                                   const float *gain, const Number *y_gradient, Number *x_gradient,
                                   Number *f_gradient, float *gain_gradient, float *bias_gradient) {
  for (int r = 0; r < n->rows; r++) {
    size_t row = (size_t)r * n->width;
    Moments m = moments(n, sum + row);
    Floats total = {}, product = {};
    for (int i = 0; i < n->width; i += LANES) {
      Floats normal = (load(sum + row + i) - m.mean) * m.inverse;
      Floats gradient = load(y_gradient + row + i);
      *(Floats *)(gain_gradient + i) += gradient * normal;
      *(Floats *)(bias_gradient + i) += gradient;
      gradient *= *(Floats *)(gain + i);
      total += gradient;
      product += gradient * normal;
    }
    float mean = n->is_rms ? 0.0f : sum_of(total) / n->width;
    float slope = sum_of(product) / n->width;
    for (int i = 0; i < n->width; i += LANES) {
      Floats normal = (load(sum + row + i) - m.mean) * m.inverse;
      Floats gradient = load(y_gradient + row + i) * *(Floats *)(gain + i);
      gradient = (gradient - mean - normal * slope) * m.inverse;
      store(x_gradient + row + i, gradient);
      store(f_gradient + row + i, drop(n, gradient, levels, row + i));
    }
  }
}
