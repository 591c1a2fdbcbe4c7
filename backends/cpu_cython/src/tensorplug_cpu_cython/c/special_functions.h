/* The loops of special functions: of float in vectors, some of double, too. */
#ifndef TENSORPLUG_SPECIAL_FUNCTIONS_H
#define TENSORPLUG_SPECIAL_FUNCTIONS_H

#include "pointwise.h"

/* Of float alone, and of both. */
#define TP_SPECIAL_OF_FLOAT(X) X(j0) X(j1) X(y0) X(y1) X(k0) X(k0e) X(k1) X(k1e) X(airy) X(zeta)
#define TP_SPECIAL(X)                                                                                  \
    X(spherical_j0) X(chebyshev_t) X(chebyshev_u) X(chebyshev_v) X(chebyshev_w) X(hermite_h)           \
    X(hermite_he) X(laguerre_l) X(legendre_p)
/* Of both, by SciPy's function, the first of the parameters, where the loop has none. */
#define TP_SPECIAL_ASKING(X) X(gammainc) X(gammaincc)

#define TP_ONE(name) +1
enum { TP_SPECIAL_FUNCTIONS = TP_SPECIAL_OF_FLOAT(TP_ONE) TP_SPECIAL(TP_ONE) TP_SPECIAL_ASKING(TP_ONE) };
#undef TP_ONE

typedef struct {
    struct { const char *name; int asks; tp_loop loops[TP_TYPES]; } of[TP_SPECIAL_FUNCTIONS];
} tp_specials;

TP_DECLARE(const tp_specials, tp_special_table);

#endif
