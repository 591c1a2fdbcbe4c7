/* How links of chains are defined, by the expressions of x, y and z that loops have. */
#ifndef TENSORPLUG_POINTWISE_LINKS_H
#define TENSORPLUG_POINTWISE_LINKS_H

#include "pointwise_chains.h"
#include "vectors.h"

/* Registers for four values leave enough for what lies between, where there are sixteen. */
typedef float tp_lanes __attribute__((vector_size(VECTOR)));
#define LINK_ARGUMENTS tp_lanes a_, tp_lanes b_, tp_lanes c_, tp_lanes d_, const tp_link *link, ptrdiff_t at
typedef void (*tp_link_function)(LINK_ARGUMENTS);

#define LINK(name, part, T, expression)                                                                \
    static void name(LINK_ARGUMENTS) {                                                                 \
        const double p[4] = {link->p[0], link->p[1], link->p[2], link->p[3]};                          \
        (void)p;                                                                                       \
        part(a_, 0, T, expression) part(b_, 1, T, expression)                                          \
        part(c_, 2, T, expression) part(d_, 3, T, expression)                                          \
        ((tp_link_function)link[1].code)(a_, b_, c_, d_, link + 1, at);                                \
    }
#define LINK_OPERAND(k, which) (link->data[which] + (at & link->moves[which]) + (k) * VECTOR)
/* As an array the vector meets the expression that the loop has, so both round alike; it becomes one instruction per
   operation, and the array none. (Moved by memcpy, GCC would bring 32 bytes through memory as two halves, and unrolled
   it would take two doubles one by one.) */
#define LINK_LANES(j) _Pragma("GCC unroll 1") for (int j = 0; j < PER; j++)
#define LINK_PART(value, T, ...)                                                                       \
    {                                                                                                  \
        enum { PER = VECTOR / sizeof(T) };                                                             \
        T value_[PER];                                                                                 \
        *(float_vector *)value_ = value;                                                               \
        __VA_ARGS__                                                                                    \
        value = *(float_vector *)value_;                                                               \
    }
#define LINK_READ(T, name, k, which)                                                                   \
    T name[PER];                                                                                       \
    *(float_vector *)name = *(const float_vector *)LINK_OPERAND(k, which);
#define LINK_OF_ONE(value, k, T, expression)                                                           \
    LINK_PART(value, T, LINK_LANES(j) {                                                                \
        const T x = value_[j];                                                                         \
        value_[j] = (T)(expression);                                                                   \
    })
#define LINK_OF_TWO(value, k, T, expression)                                                           \
    LINK_PART(value, T, LINK_READ(T, other_, k, 0) LINK_LANES(j) {                                     \
        const T x = value_[j], y = other_[j];                                                          \
        value_[j] = (T)(expression);                                                                   \
    })
#define LINK_OF_TWO_TURNED(value, k, T, expression)                                                    \
    LINK_PART(value, T, LINK_READ(T, other_, k, 0) LINK_LANES(j) {                                     \
        const T x = other_[j], y = value_[j];                                                          \
        value_[j] = (T)(expression);                                                                   \
    })
#define LINK_OF_THREE(value, k, T, expression)                                                         \
    LINK_PART(value, T, LINK_READ(T, other_, k, 0) LINK_READ(T, third_, k, 1) LINK_LANES(j) {          \
        const T x = value_[j], y = other_[j], z = third_[j];                                           \
        value_[j] = (T)(expression);                                                                   \
    })

#define LINKS(name, part, expression32, expression64)                                                  \
    LINK(name##_link_F32, part, float, expression32) LINK(name##_link_F64, part, double, expression64)
#define LINKS_TURNED(name, expression)                                                                 \
    LINK(name##_turned_F32, LINK_OF_TWO_TURNED, float, expression)                                     \
    LINK(name##_turned_F64, LINK_OF_TWO_TURNED, double, expression)

/* Entries of a table of tp_links. */
#define LINKED(name)                                                                                   \
    {name##_F32, (tp_link_code)name##_link_F32, NULL, sizeof(float)},                                  \
    {name##_F64, (tp_link_code)name##_link_F64, NULL, sizeof(double)},
#define LINKED_BOTH_WAYS(name)                                                                         \
    {name##_F32, (tp_link_code)name##_link_F32, (tp_link_code)name##_turned_F32, sizeof(float)},       \
    {name##_F64, (tp_link_code)name##_link_F64, (tp_link_code)name##_turned_F64, sizeof(double)},

#endif
