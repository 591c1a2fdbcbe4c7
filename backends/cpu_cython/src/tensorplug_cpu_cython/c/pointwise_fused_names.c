/* The names of the fused ops. */
#include "pointwise_fused.h"

#define FACTS(name, arrays, grain, truth) {#name, arrays, grain * 1024, truth},
const tp_fused_facts tp_fused_ops[TP_FUSED_OPS] = {TP_FUSED(FACTS)};
