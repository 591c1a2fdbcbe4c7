/* Products of complex numbers. */
#ifndef TENSORPLUG_COMPLEX_PRODUCT_H
#define TENSORPLUG_COMPLEX_PRODUCT_H

#define RE(x) (__real__(x))
#define IM(x) (__imag__(x))
#define COMPLEX_PRODUCT(x, y)                                                                          \
    __builtin_complex(RE(x) * RE(y) - IM(x) * IM(y), RE(x) * IM(y) + IM(x) * RE(y))

#endif
