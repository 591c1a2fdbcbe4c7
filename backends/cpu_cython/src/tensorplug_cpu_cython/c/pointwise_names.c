/* The names of the pointwise ops. */
#include "pointwise.h"

#define FACTS(name, grain) {#name, grain * 1024},
const tp_op_facts tp_binary_ops[TP_BINARY_OPS] = {TP_BINARY(FACTS)};
const tp_op_facts tp_unary_ops[TP_UNARY_OPS] = {TP_UNARY(FACTS)};
