/* What Python calls. */
#include "vectors.h"
#include "attention.h"
#include "norm.h"
#include "cross_entropy.h"
#include "random.h"
#include "relu.h"
