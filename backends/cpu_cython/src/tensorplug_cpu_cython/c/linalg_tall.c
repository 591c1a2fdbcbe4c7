#include "linalg_tall.h"

#include "vectors.h"

#include <math.h>
#include <string.h>

typedef float_vector vector_F32;
typedef double_vector vector_F64;

/* Squares of what lies between these do not leave the type's range. */
#define T float
#define NAME(name) name##_F32
#define SQRT sqrtf
#define FABS fabsf
#define LIMIT 1e15f
#define SMALLEST 1e-12f
#include "linalg_tall_body.h"
#undef T
#undef NAME
#undef SQRT
#undef FABS
#undef LIMIT
#undef SMALLEST

#define T double
#define NAME(name) name##_F64
#define SQRT sqrt
#define FABS fabs
#define LIMIT 1e140
#define SMALLEST 1e-140
#include "linalg_tall_body.h"

const tp_tall LEVEL(tp_tall_table) = {{reduce_F32, reduce_F64}, {expand_F32, expand_F64}};
