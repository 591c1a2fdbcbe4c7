#include "normalization_layer.h"

#include <math.h>

#include "moments.h"
#include "parallel.h"
#include "sums.h"

/* So many rows are added up in the element type before they go into sums in double. */
enum { DEEP = 32, WIDTH = 128 };

/* Of rows up to SHORT so many are worked on at a time, vectors running over the rows. */
enum { SHORT = 16, LANES = 32 };

#define T float
#define OF(name) name##_F32
#include "normalization_layer_body.h"
#undef T
#undef OF
#define T double
#define OF(name) name##_F64
#include "normalization_layer_body.h"

#define BOTH(name) {name##_F32, name##_F64}
const tp_norm_kernels LEVEL(tp_norm_table) = {
    .rows = BOTH(rows), .row_statistics = BOTH(row_statistics), .rows_gradient = BOTH(rows_gradient), .channels = BOTH(channels),
    .channels_backward = BOTH(channels_backward), .unit = BOTH(unit), .unit_backward = BOTH(unit_backward),
};
