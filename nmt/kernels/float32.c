/* The kernels for activations in float32. */
#include "vectors.h"
typedef float Number;
INLINE Floats load(const Number *x) { return *(const Floats *)x; }
INLINE void store(Number *y, Floats x) { *(Floats *)y = x; }
#include "kernels.h"
#include "instructions.h"
