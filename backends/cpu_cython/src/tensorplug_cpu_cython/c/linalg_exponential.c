/* Scaling and squaring of a Taylor polynomial, whose terms are grouped (Paterson and Stockmeyer, 1973). How far to scale
   is told by the roots of the powers' norms, which are below the norm of a matrix that is far from normal (Al-Mohy and
   Higham, "A new scaling and squaring algorithm for the matrix exponential", 2009). */
#include "linalg_exponential.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { BESIDE = 16, MOST = TP_EXPONENTIAL };

/* With GROUPS powers the polynomial has degree GROUPS^2; where the norm is at most REACH, its first missing term is below
   the precision. */
#define T float
#define GROUPS 3
#define REACH 0.84F
#define LARGEST FLT_MAX
#define PARTS 1
#define NAME(name) name##_F32
#include "linalg_exponential_body.h"
#undef PARTS
#undef NAME
#define PARTS 2
#define NAME(name) name##_C32
#include "linalg_exponential_body.h"
#undef PARTS
#undef NAME
#undef T
#undef GROUPS
#undef REACH
#undef LARGEST

#define T double
#define GROUPS 4
#define REACH 0.81
#define LARGEST DBL_MAX
#define PARTS 1
#define NAME(name) name##_F64
#include "linalg_exponential_body.h"
#undef PARTS
#undef NAME
#define PARTS 2
#define NAME(name) name##_C64
#include "linalg_exponential_body.h"

const tp_exponentials LEVEL(tp_exponential_table) = {
    .exponential = {exponential_F32, exponential_F64, exponential_C32, exponential_C64},
};
