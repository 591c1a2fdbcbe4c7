#include "vision.h"

#include <math.h>

#include "parallel.h"

/* Positions are worked on in blocks, so that vectors run over them; each has up to 4 elements along a dimension. */
enum { WIDTH = 64, ALONG = 4, TAPS = 16 };

#define T float
#define INDEX int32_t
#define OF(name) name##_F32
#define FLOOR floorf
#define RINT rintf
#define ABS fabsf
#include "vision_body.h"
#undef T
#undef INDEX
#undef OF
#undef FLOOR
#undef RINT
#undef ABS
#define T double
#define INDEX int64_t
#define OF(name) name##_F64
#define FLOOR floor
#define RINT rint
#define ABS fabs
#include "vision_body.h"

const tp_vision LEVEL(tp_vision_table) = {
    .sample = {sample_F32, sample_F64},
    .gradient = {gradient_F32, gradient_F64},
};
