/* The kernels, for activations of the type `Number`, which the C file that includes this defines. */
#include "attention.h"
#include "norm.h"
#include "cross_entropy.h"
#include "random.h"
#include "relu.h"
