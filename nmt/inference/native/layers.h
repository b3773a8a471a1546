/* The Transformer of nmt/model in float32, for rows without padding: encoder and one decoder step.
 *
 * Names and order are those of the paper and of nmt/model; see there for what each part means.
 */
#include "products.h"

enum { RELU, GELU, SWISH };
enum { INTERLEAVED, SINES_FIRST, TENSOR2TENSOR, FAIRSEQ, ROTARY };
#define FAIRSEQ_OFFSET 2

typedef struct {
  const float *gain, *bias;
} Norm;

typedef struct {
  Linear query_key_value, output; /* self-attention */
  Linear candidate_forget; /* of a recurrence in the place of self-attention in the decoder */
  Linear cross_query, cross_key_value, cross_output; /* of a decoder layer */
  Linear inner, outer, gate; /* feed-forward network; gate has no panels if it is not gated */
  Norm self_norm, recurrence_norm, cross_norm, feed_forward_norm;
} Layer;

typedef struct {
  const Layer *encoder, *decoder;
  int32_t encoder_layers, decoder_layers;
  int32_t d_model, heads, d_ff;
  int32_t is_pre_norm, is_rms_norm, is_rotary, activation;
  int32_t zero; /* id whose target embedding is zero, or -1 */
  int32_t alignment_layer, alignment_head; /* whose attention to the source is recorded; -1: all heads */
  float epsilon, embedding_scale;
  const float *source_embedding, *target_embedding; /* (V, d_model) */
  float *positions; /* (longest, d_model) */
  Norm encoder_norm, decoder_norm; /* after the last pre-norm layer */
  Linear projection; /* to the logits */
} Model;

/* Buffers for the intermediate results of `rows` rows. */
typedef struct {
  float *normalized, *projected, *attended, *hidden, *result; /* projected: 3 * d_model wide */
  float *scores; /* attention weights of one query */
  float *x_scales;
  uint8_t *bytes;
} Buffers;

static void normalize(const Model *m, const Norm *norm, const float *x, float *y) {
  int d = m->d_model;
  Floats sum = {}, squares = {};
  for (int i = 0; i < d; i += LANES) sum += *(Floats *)(x + i);
  float mean = m->is_rms_norm ? 0.0f : sum_of(sum) / d;
  for (int i = 0; i < d; i += LANES) {
    Floats centred = *(Floats *)(x + i) - mean;
    squares += centred * centred;
  }
  float scale = 1.0f / sqrtf(sum_of(squares) / d + m->epsilon);
  for (int i = 0; i < d; i += LANES)
    *(Floats *)(y + i) =
        (*(Floats *)(x + i) - mean) * scale * *(Floats *)(norm->gain + i) + *(Floats *)(norm->bias + i);
}

/* What a sub-layer reads: x itself (post-norm) or its normalised rows (pre-norm). */
static const float *sublayer_input(const Model *m, const Norm *norm, int rows, const float *x,
                                   Buffers *b) {
  if (!m->is_pre_norm) return x;
  for (int r = 0; r < rows; r++)
    normalize(m, norm, x + (size_t)r * m->d_model, b->normalized + (size_t)r * m->d_model);
  return b->normalized;
}

/* x = LayerNorm(x + f), or with pre-norm x + f. */
static void add_result(const Model *m, const Norm *norm, int rows, const float *f, float *x) {
  int d = m->d_model;
  for (int r = 0; r < rows; r++, x += d, f += d) {
    for (int i = 0; i < d; i += LANES) *(Floats *)(x + i) += *(Floats *)(f + i);
    if (!m->is_pre_norm) normalize(m, norm, x, x);
  }
}

/* y = softmax(q k^T / sqrt(d_k)) v for one query and all heads, over `count` positions.
 *
 * The keys of position i begin at keys + i * stride + slots[i] * slot_size, in floats; `slots` may be
 * NULL, which stands for zeros. The values are stored in the same way. If `sums` (count) is not NULL,
 * the weights of each head, or of the alignment head alone, are added to it; the caller clears it. */
static void attend(const Model *m, const float *query, const float *keys, const float *values,
                   size_t stride, const int32_t *slots, size_t slot_size, int count, float *scores,
                   float *y, float *sums) {
  int width = m->d_model / m->heads, padded = (count + LANES - 1) / LANES * LANES;
  float factor = 1.0f / sqrtf(width);
  for (int h = 0; h < m->heads; h++) {
    const float *q = query + h * width;
    for (int i = 0; i < count; i++) {
      const float *k = keys + i * stride + (slots ? slots[i] * slot_size : 0) + h * width;
      Floats sum = {};
      for (int j = 0; j < width; j += LANES) sum += *(Floats *)(q + j) * *(Floats *)(k + j);
      scores[i] = sum_of(sum) * factor;
    }
    for (int i = count; i < padded; i++) scores[i] = -1e30f;
    Floats most = *(Floats *)scores, total = {};
    for (int i = LANES; i < padded; i += LANES) most = larger(most, *(Floats *)(scores + i));
    float largest = max_of(most);
    for (int i = 0; i < padded; i += LANES) {
      Floats e = exponential(*(Floats *)(scores + i) - largest);
      for (int j = count - i; j < LANES; j++) e[j] = 0.0f;
      *(Floats *)(scores + i) = e;
      total += e;
    }
    float inverse = 1.0f / sum_of(total);
    if (sums && (m->alignment_head < 0 || m->alignment_head == h))
      for (int i = 0; i < count; i++) sums[i] += scores[i] * inverse;
    for (int j = 0; j < width; j += LANES) {
      Floats sum = {};
      for (int i = 0; i < count; i++) {
        const float *v = values + i * stride + (slots ? slots[i] * slot_size : 0) + h * width;
        sum += *(Floats *)(v + j) * scores[i];
      }
      *(Floats *)(y + h * width + j) = sum * inverse;
    }
  }
}

static void activate(int activation, size_t count, float *x) {
  for (size_t i = 0; i < count; i += LANES) {
    Floats value = *(Floats *)(x + i);
    if (activation == RELU)
      value = larger(all_floats(0.0f), value); /* NaN stays NaN */
    else if (activation == SWISH)
      value = value / (1.0f + exponential(-larger(value, all_floats(-87.0f))));
    else
      for (int j = 0; j < LANES; j++) value[j] *= 0.5f * (1.0f + erff(value[j] * 0.70710678f));
    *(Floats *)(x + i) = value;
  }
}

static void apply(const Linear *a, int rows, const float *x, float *y, Buffers *b) {
  multiply(a, rows, x, y, b->bytes, b->x_scales);
}

static void feed_forward(const Model *m, const Layer *layer, int rows, float *x, Buffers *b) {
  const float *input = sublayer_input(m, &layer->feed_forward_norm, rows, x, b);
  apply(&layer->inner, rows, input, b->hidden, b);
  size_t count = (size_t)rows * m->d_ff;
  activate(m->activation, count, b->hidden);
  if (layer->gate.panels) {
    float *gate = b->hidden + count;
    apply(&layer->gate, rows, input, gate, b);
    for (size_t i = 0; i < count; i += LANES) *(Floats *)(b->hidden + i) *= *(Floats *)(gate + i);
  }
  apply(&layer->outer, rows, b->hidden, b->result, b);
  add_result(m, &layer->feed_forward_norm, rows, b->result, x);
}

static void embed(const Model *m, const float *embedding, int32_t id, int position, int32_t zero,
                  float *x) {
  const float *row = embedding + (size_t)id * m->d_model;
  const float *encoding = m->positions + (size_t)position * m->d_model;
  float scale = id == zero ? 0.0f : m->embedding_scale;
  for (int i = 0; i < m->d_model; i += LANES)
    *(Floats *)(x + i) =
        *(Floats *)(row + i) * scale + (m->is_rotary ? (Floats){} : *(Floats *)(encoding + i));
}

/* Rotate the query and the key of a position, which stand side by side, see nmt/model. */
static void rotate(const Model *m, int position, float *x) {
  const float *table = m->positions + (size_t)position * m->d_model;
  for (int part = 0; part < 2; part++, x += m->d_model)
    for (int i = 0; i < m->d_model; i += 2) {
      float a = x[i], b = x[i + 1], sine = table[i], cosine = table[i + 1];
      x[i] = a * cosine - b * sine;
      x[i + 1] = a * sine + b * cosine;
    }
}

/* Fill the table of positional encodings with `length` positions, see nmt/model. */
static void fill_positions(const Model *m, int length, int kind) {
  int d = m->d_model, pairs = d / 2;
  int period = kind == ROTARY ? pairs / m->heads : pairs; /* rotary: the same in each head */
  int has_last = kind == TENSOR2TENSOR || kind == FAIRSEQ, first = kind == FAIRSEQ ? FAIRSEQ_OFFSET : 0;
  int intervals = has_last ? (pairs > 1 ? pairs - 1 : 1) : period;
  for (int i = 0; i < pairs; i++) {
    /* not pow: that of a new glibc would keep a wheel from running with an older one */
    double frequency = powl(10000.0L, -(double)(i % period) / intervals);
    int in_turn = kind == INTERLEAVED || kind == ROTARY;
    int sine = in_turn ? 2 * i : i, cosine = in_turn ? 2 * i + 1 : pairs + i;
    for (int t = 0; t < length; t++) {
      m->positions[(size_t)t * d + sine] = sin((first + t) * frequency);
      m->positions[(size_t)t * d + cosine] = cos((first + t) * frequency);
    }
  }
}

/* Encode sentences n, the source ids starts[n] to starts[n + 1], into x (all ids, d_model). */
static void encode(const Model *m, int sentences, const int32_t *source, const int32_t *starts,
                   float *x, Buffers *b) {
  size_t d = m->d_model;
  int rows = starts[sentences];
  for (int n = 0; n < sentences; n++)
    for (int i = starts[n]; i < starts[n + 1]; i++)
      embed(m, m->source_embedding, source[i], i - starts[n], -1, x + i * d);
  for (int l = 0; l < m->encoder_layers; l++) {
    const Layer *layer = &m->encoder[l];
    apply(&layer->query_key_value, rows, sublayer_input(m, &layer->self_norm, rows, x, b),
          b->projected, b);
    for (int n = 0; n < sentences; n++) {
      float *first = b->projected + starts[n] * 3 * d;
      int length = starts[n + 1] - starts[n];
      for (int i = 0; m->is_rotary && i < length; i++) rotate(m, i, first + i * 3 * d);
      for (int i = 0; i < length; i++)
        attend(m, first + i * 3 * d, first + d, first + 2 * d, 3 * d, NULL, 0, length, b->scores,
               b->attended + (starts[n] + i) * d, NULL);
    }
    apply(&layer->output, rows, b->attended, b->result, b);
    add_result(m, &layer->self_norm, rows, b->result, x);
    feed_forward(m, layer, rows, x, b);
  }
  if (m->is_pre_norm)
    for (int r = 0; r < rows; r++) normalize(m, &m->encoder_norm, x + r * d, x + r * d);
}

/* One position of a hypothesis, and where its past and its source are stored. Keys and values of a
 * position stand side by side: rows of 2 * d_model. */
typedef struct {
  const int32_t *past; /* the slot of each position, the new one as the last */
  int32_t past_count;
  int32_t first_slot; /* of its sentence */
  int32_t first_source, source_length; /* rows of the projected memory */
  float *weights; /* (source_length) the attention to the source is added here; NULL: not wanted */
} Query;

/* h = max(0, c) with c = f c' + (1 - f) W x, see nmt/model/recurrence.py. The state c of a position
 * stands in `states` where attention has its key; c' is that of the position before. */
static void recur(const Model *m, const Layer *layer, int rows, const Query *queries, float *states,
                  size_t stride, size_t slot_size, float *x, Buffers *b) {
  size_t d = m->d_model;
  apply(&layer->candidate_forget, rows, sublayer_input(m, &layer->recurrence_norm, rows, x, b),
        b->projected, b);
  for (int r = 0; r < rows; r++) {
    const Query *query = &queries[r];
    int latest = query->past_count - 1;
    float *of_sentence = states + query->first_slot * slot_size;
    float *state = of_sentence + latest * stride + query->past[latest] * slot_size;
    const float *before =
        latest ? of_sentence + (latest - 1) * stride + query->past[latest - 1] * slot_size : NULL;
    const float *candidate = b->projected + r * 2 * d, *gate = candidate + d;
    for (size_t i = 0; i < d; i += LANES) {
      Floats f = 1.0f / (1.0f + exponential(-larger(*(Floats *)(gate + i), all_floats(-87.0f))));
      Floats c = (1.0f - f) * *(Floats *)(candidate + i);
      if (before) c += f * *(Floats *)(before + i);
      *(Floats *)(state + i) = c;
      *(Floats *)(b->attended + r * d + i) = larger(all_floats(0.0f), c); /* NaN stays NaN */
    }
  }
  add_result(m, &layer->recurrence_norm, rows, b->attended, x);
}

/* self-attention: keys and values of the new positions go into `cache`, see `decode` */
static void attend_to_past(const Model *m, const Layer *layer, int rows, const Query *queries,
                           float *cache, size_t stride, size_t slot_size, float *x, Buffers *b) {
  size_t d = m->d_model;
  apply(&layer->query_key_value, rows, sublayer_input(m, &layer->self_norm, rows, x, b),
        b->projected, b);
  for (int r = 0; r < rows; r++) {
    const Query *query = &queries[r];
    int latest = query->past_count - 1, slot = query->first_slot + query->past[latest];
    if (m->is_rotary) rotate(m, latest, b->projected + r * 3 * d);
    memcpy(cache + latest * stride + slot * slot_size, b->projected + r * 3 * d + d,
           slot_size * sizeof(float));
  }
  for (int r = 0; r < rows; r++) {
    const Query *query = &queries[r];
    const float *keys = cache + query->first_slot * slot_size;
    attend(m, b->projected + r * 3 * d, keys, keys + d, stride, query->past, slot_size,
           query->past_count, b->scores, b->attended + r * d, NULL);
  }
  apply(&layer->output, rows, b->attended, b->result, b);
  add_result(m, &layer->self_norm, rows, b->result, x);
}

/* Apply all decoder layers to x (rows, d_model). `cache` (positions, layers, slots, 2 * d_model)
 * has the keys and values of earlier positions, or their states; those of x are added. Layer l has
 * the keys and values of the source in memory[l]. */
static void decode(const Model *m, int rows, const Query *queries, int slots, float *cache,
                   float *const *memory, float *x, Buffers *b) {
  size_t d = m->d_model, slot_size = 2 * d, stride = slot_size * slots * m->decoder_layers;
  for (int l = 0; l < m->decoder_layers; l++) {
    const Layer *layer = &m->decoder[l];
    float *of_layer = cache + slot_size * slots * l;
    if (layer->candidate_forget.panels)
      recur(m, layer, rows, queries, of_layer, stride, slot_size, x, b);
    else
      attend_to_past(m, layer, rows, queries, of_layer, stride, slot_size, x, b);

    apply(&layer->cross_query, rows, sublayer_input(m, &layer->cross_norm, rows, x, b),
          b->projected, b);
    for (int r = 0; r < rows; r++) {
      const float *stored = memory[l] + queries[r].first_source * 2 * d;
      float *sums = l == m->alignment_layer ? queries[r].weights : NULL;
      attend(m, b->projected + r * d, stored, stored + d, 2 * d, NULL, 0, queries[r].source_length,
             b->scores, b->attended + r * d, sums);
    }
    apply(&layer->cross_output, rows, b->attended, b->result, b);
    add_result(m, &layer->cross_norm, rows, b->result, x);
    feed_forward(m, layer, rows, x, b);
  }
  if (m->is_pre_norm)
    for (int r = 0; r < rows; r++) normalize(m, &m->decoder_norm, x + r * d, x + r * d);
}
