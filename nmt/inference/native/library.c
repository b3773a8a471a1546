/* What Python calls: `nmt_encode` (work.h) for the sources, then `nmt_translate` (search.h) for a
 * whole beam search, or `nmt_start` and `nmt_step` (steps.h) for the steps of a search in Python. */
#include "work.h"
#include "search.h"
#include "steps.h"
#include "../../kernels/instructions.h"

EXPORT void nmt_positions(const Model *m, int32_t length, int32_t kind) {
  fill_positions(m, length, kind);
}

/* Outputs in a panel: the caller stores matrices accordingly. */
EXPORT int nmt_panel(void) { return PANEL; }

/* Floats in a register: the widths of heads are multiples of it. */
EXPORT int nmt_lanes(void) { return LANES; }
