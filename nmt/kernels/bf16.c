/* The kernels for activations in bfloat16. */
#include "vectors.h"
typedef Bf16 Number;
INLINE Floats load(const Number *x) { return load_bf16(x); }
INLINE void store(Number *y, Floats x) { store_bf16(y, x); }
#include "kernels.h"
#include "linear.h"
#define ACTIVATIONS_IN_BF16
#include "instructions.h"
