/* What stands beside the products of max(0, x W + b): the bias, ReLU, and the gradients of both. */

/* y (rows, width) = max(0, y + bias). */
EXPORT void nmt_add_bias_relu(int32_t rows, int32_t width, const float *bias, Number *y) {
  for (int r = 0; r < rows; r++, y += width)
    for (int i = 0; i < width; i += LANES) {
      Floats sum = load(y + i) + *(const Floats *)(bias + i);
      store(y + i, larger(all_floats(0.0f), sum)); /* NaN stays NaN */
    }
}

/* sum_gradient is y_gradient where the result y is positive, else 0. Its rows are added to the
 * gradient of the bias (width). */
EXPORT void nmt_bias_relu_gradients(int32_t rows, int32_t width, const Number *y,
                                    const Number *y_gradient, Number *sum_gradient,
                                    float *bias_gradient) {
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < width; i += LANES) {
      size_t at = (size_t)r * width + i;
      Floats gradient = load(y_gradient + at);
      gradient = (Floats)((Ints)gradient & (load(y + at) > 0.0f));
      store(sum_gradient + at, gradient);
      *(Floats *)(bias_gradient + i) += gradient;
    }
}
