/* What Python calls. */
#include "vectors.h"
#include "random.h"
#include "attention.h"
#include "norm.h"
#include "cross_entropy.h"
