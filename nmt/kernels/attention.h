/* Attention (Eq. 1) between sentences whose tokens stand side by side without padding, and its
 * gradients. Sentences are short, so all numbers of a sentence and head stay in the caches: they are
 * computed in float32, one sentence and head after the other, and only the results are written.
 */
#define ROWS 6
#define VECTORS 2 /* 6 x 2 sums fit into 16 registers */

typedef struct {
  int32_t sentences, heads, width; /* numbers of a head: K */
  int32_t is_causal; /* a position sees itself and earlier ones */
  const int64_t *query_starts, *memory_starts; /* (sentences + 1): the first token of each */
  const int64_t *memory_lengths; /* (sentences): tokens that may be seen, if not causal */
  const Number *query, *key, *value; /* (tokens, heads * width), as are results and gradients */
} Attention;

/* Numbers of one sentence and head: T queries, S keys; rows of scores have `padded` >= S. */
typedef struct {
  int queries, keys, padded;
  float *query, *key, *value, *gradient; /* (T, K), (S, K), (S, K), (T, K) */
  float *columns; /* (K, padded): keys or values, transposed */
  float *weights, *scores; /* (T, padded) */
} Head;

/* A matrix that is read by single numbers: element (r, i) is at[r * row + i * term]. */
typedef struct {
  const float *at;
  int row, term;
} Left;

/* Where a product is written, in rows of `stride` numbers. */
typedef struct {
  void *at;
  int stride, is_number; /* of the type Number, else float */
} Result;

INLINE void store_product(Result y, size_t i, Floats x) {
  if (y.is_number)
    store((Number *)y.at + i, x);
  else
    *(Floats *)((float *)y.at + i) = x;
}

/* LANES * `vectors` (a constant) columns of ROWS rows of a product, of which `rows` are stored. */
INLINE void multiply_block(const int vectors, int rows, int terms, Left a, const float *b,
                           int b_stride, float factor, Result y, size_t first) {
  Floats sums[ROWS][VECTORS] = {};
  for (int i = 0; i < terms; i++) {
    Floats right[VECTORS];
    for (int v = 0; v < vectors; v++) right[v] = *(const Floats *)(b + i * b_stride + v * LANES);
#pragma GCC unroll 6
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) sums[r][v] += a.at[r * a.row + i * a.term] * right[v];
  }
#pragma GCC unroll 6
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++)
      if (r < rows) store_product(y, first + r * y.stride + v * LANES, sums[r][v] * factor);
}

/* y = a b factor, a (rows, terms) and b (terms, columns); `columns` is a multiple of LANES. */
static void multiply(int rows, int columns, int terms, Left a, const float *b, int b_stride,
                     float factor, Result y) {
  const int width = VECTORS * LANES;
  for (int r = 0; r < rows; r += ROWS, a.at += ROWS * a.row) {
    size_t first = (size_t)r * y.stride;
    int column = 0;
    for (; column + width <= columns; column += width)
      multiply_block(VECTORS, rows - r, terms, a, b + column, b_stride, factor, y, first + column);
    if (column < columns)
      multiply_block(1, rows - r, terms, a, b + column, b_stride, factor, y, first + column);
  }
}

/* The lower halves of two vectors, a lane of each in turn; and their upper halves. */
#if LANES == 16
#define LOWER 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define UPPER 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif LANES == 8
#define LOWER 0, 8, 1, 9, 2, 10, 3, 11
#define UPPER 4, 12, 5, 13, 6, 14, 7, 15
#else
#define LOWER 0, 4, 1, 5
#define UPPER 2, 6, 3, 7
#endif
#if defined __clang__ || __GNUC__ >= 12
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define SHUFFLE(x, y, ...) __builtin_shuffle(x, y, (Ints){__VA_ARGS__})
#endif

/* Transpose LANES x LANES numbers. Each round rotates the bits of (row, lane), read as one number, by
 * one bit. After log2(LANES) rounds the two are exchanged. */
INLINE void transpose_block(Floats x[LANES]) {
  Floats y[LANES];
#pragma GCC unroll 4
  for (int round = 1; round < LANES; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < LANES / 2; i++) {
      y[2 * i] = SHUFFLE(x[i], x[i + LANES / 2], LOWER);
      y[2 * i + 1] = SHUFFLE(x[i], x[i + LANES / 2], UPPER);
    }
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) x[i] = y[i];
  }
}

/* y (width, padded) = x^T, x (rows, width); there may be garbage behind `rows` columns. */
static void transpose(int width, int padded, const float *x, float *y) {
  for (int r = 0; r < padded; r += LANES)
    for (int w = 0; w < width; w += LANES) {
      Floats block[LANES];
#pragma GCC unroll 16
      for (int i = 0; i < LANES; i++) block[i] = *(const Floats *)(x + (r + i) * width + w);
      transpose_block(block);
#pragma GCC unroll 16
      for (int i = 0; i < LANES; i++) *(Floats *)(y + (w + i) * padded + r) = block[i];
    }
}

static void load_rows(int rows, int width, const Number *x, int stride, float *y) {
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < width; i += LANES)
      *(Floats *)(y + r * width + i) = load(x + (size_t)r * stride + i);
}

/* scores (padded) become softmax(scores) of the first `visible` ones, and zeros behind them. */
static void softmax_row(float *scores, int visible, int padded) {
  Ints lane;
  for (int i = 0; i < LANES; i++) lane[i] = i;
  Floats most = all_floats(-INFINITY), total = {};
  for (int i = 0; i < padded; i += LANES) {
    Ints is_visible = lane + i < visible;
    Ints score = *(Ints *)(scores + i) & is_visible;
    Floats masked = (Floats)(score | ((Ints)all_floats(-1e30f) & ~is_visible));
    *(Floats *)(scores + i) = masked;
    most = larger(most, masked);
  }
  float largest = max_of(most);
  for (int i = 0; i < padded; i += LANES) {
    Floats e = exponential(*(Floats *)(scores + i) - largest);
    e = (Floats)((Ints)e & (lane + i < visible));
    *(Floats *)(scores + i) = e;
    total += e;
  }
  float inverse = visible ? 1.0f / sum_of(total) : 0.0f;
  for (int i = 0; i < padded; i += LANES) *(Floats *)(scores + i) *= inverse;
}

/* Where the numbers of a head begin for a token. */
INLINE size_t offset(const Attention *a, int64_t token, int head) {
  return ((size_t)token * a->heads + head) * a->width;
}

/* Load queries, keys and values of a sentence and head; compute the attention weights. */
static void compute_weights(const Attention *a, int sentence, int head, Head *h) {
  int width = a->width, stride = a->heads * width;
  size_t query_at = offset(a, a->query_starts[sentence], head);
  size_t memory_at = offset(a, a->memory_starts[sentence], head);
  h->queries = a->query_starts[sentence + 1] - a->query_starts[sentence];
  h->keys = a->memory_starts[sentence + 1] - a->memory_starts[sentence];
  h->padded = (h->keys + LANES - 1) / LANES * LANES;
  load_rows(h->queries, width, a->query + query_at, stride, h->query);
  load_rows(h->keys, width, a->key + memory_at, stride, h->key);
  load_rows(h->keys, width, a->value + memory_at, stride, h->value);
  transpose(width, h->padded, h->key, h->columns);
  multiply(h->queries, h->padded, width, (Left){h->query, width, 1}, h->columns, h->padded,
           1.0f / sqrtf(width), (Result){h->weights, h->padded, 0});
  for (int t = 0; t < h->queries; t++) {
    int visible = a->is_causal ? t + 1 : a->memory_lengths[sentence];
    softmax_row(h->weights + t * h->padded, visible, h->padded);
  }
}

/* Memory for the longest sentences, to be freed by the caller: the address of the first array. */
static float *allocate(const Attention *a, Head *h) {
  size_t queries = 0, keys = 0;
  for (int s = 0; s < a->sentences; s++) {
    size_t t = a->query_starts[s + 1] - a->query_starts[s];
    size_t k = a->memory_starts[s + 1] - a->memory_starts[s];
    queries = t > queries ? t : queries;
    keys = k > keys ? k : keys;
  }
  size_t padded = (keys + LANES - 1) / LANES * LANES;
  size_t of_queries = queries * a->width, of_keys = padded * a->width, of_scores = queries * padded;
  size_t behind = ROWS * (a->width + padded); /* a product reads up to ROWS rows, and uses some */
  size_t bytes = sizeof(float) * (2 * of_queries + 3 * of_keys + 2 * of_scores + behind);
  bytes = (bytes + LINE - 1) / LINE * LINE; /* aligned_alloc asks for a multiple */
  float *memory = aligned_alloc(LINE, bytes);
  if (!memory) return NULL;
  memset(memory, 0, bytes);
  float **arrays[] = {&h->query, &h->gradient, &h->key,   &h->value,
                      &h->columns, &h->weights, &h->scores};
  size_t sizes[] = {of_queries, of_queries, of_keys, of_keys, of_keys, of_scores, of_scores};
  float *next = memory;
  for (int i = 0; i < 7; next += sizes[i++]) *arrays[i] = next;
  return memory;
}

/* y (tokens, heads * width) = softmax(q k^T / sqrt(K)) v. Returns 0, or 1 if memory ran out. */
EXPORT int nmt_attention(const Attention *a, Number *y) {
  Head h;
  float *memory = allocate(a, &h);
  if (!memory) return 1;
  int stride = a->heads * a->width;
  for (int s = 0; s < a->sentences; s++)
    for (int head = 0; head < a->heads; head++) {
      compute_weights(a, s, head, &h);
      Result result = {y + offset(a, a->query_starts[s], head), stride, 1};
      multiply(h.queries, a->width, h.keys, (Left){h.weights, h.padded, 1}, h.value, a->width, 1.0f,
               result);
    }
  free(memory);
  return 0;
}

/* The gradients of queries, keys and values for the gradient of y. */
EXPORT int nmt_attention_gradients(const Attention *a, const Number *y_gradient,
                                   Number *query_gradient, Number *key_gradient,
                                   Number *value_gradient) {
  Head h;
  float *memory = allocate(a, &h);
  if (!memory) return 1;
  int width = a->width, stride = a->heads * width;
  float factor = 1.0f / sqrtf(width);
  for (int s = 0; s < a->sentences; s++)
    for (int head = 0; head < a->heads; head++) {
      compute_weights(a, s, head, &h);
      size_t query_at = offset(a, a->query_starts[s], head);
      size_t memory_at = offset(a, a->memory_starts[s], head);
      load_rows(h.queries, width, y_gradient + query_at, stride, h.gradient);
      multiply(h.keys, width, h.queries, (Left){h.weights, 1, h.padded}, h.gradient, width, 1.0f,
               (Result){value_gradient + memory_at, stride, 1});
      transpose(width, h.padded, h.value, h.columns);
      multiply(h.queries, h.padded, width, (Left){h.gradient, width, 1}, h.columns, h.padded, 1.0f,
               (Result){h.scores, h.padded, 0}); /* the gradient of the weights */
      for (int t = 0; t < h.queries; t++) {
        float *scores = h.scores + t * h.padded, *weights = h.weights + t * h.padded;
        Floats sum = {};
        for (int i = 0; i < h.padded; i += LANES)
          sum += *(Floats *)(scores + i) * *(Floats *)(weights + i);
        float mean = sum_of(sum);
        for (int i = 0; i < h.padded; i += LANES)
          *(Floats *)(scores + i) = (*(Floats *)(scores + i) - mean) * *(Floats *)(weights + i);
      }
      multiply(h.queries, width, h.keys, (Left){h.scores, h.padded, 1}, h.key, width, factor,
               (Result){query_gradient + query_at, stride, 1});
      multiply(h.keys, width, h.queries, (Left){h.scores, 1, h.padded}, h.query, width, factor,
               (Result){key_gradient + memory_at, stride, 1});
    }
  free(memory);
  return 0;
}
