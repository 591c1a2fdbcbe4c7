/* Sums over a row: in lanes, so that they are vectorised, and in short runs, so that they are exact. */
#ifndef TENSORPLUG_SUMS_H
#define TENSORPLUG_SUMS_H

enum { SUM_LANES = 32, SUM_RUN = 4096 };

#define FOLD(lanes, total)                                                                             \
    for (int half = SUM_LANES / 2; half; half /= 2)                                                    \
        for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];                                    \
    total += lanes[0];

/* Declare `total` as the sum of an expression of i, from 0 to n. */
#define SUM_ROW(T, n, total, expression)                                                               \
    double total = 0;                                                                                  \
    for (ptrdiff_t from_ = 0; from_ < (n); from_ += SUM_RUN) {                                         \
        const ptrdiff_t to_ = (n) - from_ < SUM_RUN ? (n) : from_ + SUM_RUN;                           \
        T lanes_[SUM_LANES] = {0};                                                                     \
        ptrdiff_t base_ = from_;                                                                       \
        for (; base_ + SUM_LANES <= to_; base_ += SUM_LANES)                                           \
            for (int l = 0; l < SUM_LANES; l++) { const ptrdiff_t i = base_ + l; lanes_[l] += (expression); } \
        for (ptrdiff_t i = base_; i < to_; i++) lanes_[i - base_] += (expression);                     \
        FOLD(lanes_, total)                                                                            \
    }

/* The same for two expressions at once. */
#define SUM_BOTH(T, n, first, expression1, second, expression2)                                        \
    double first = 0;                                                                                  \
    double second = 0;                                                                                 \
    for (ptrdiff_t from_ = 0; from_ < (n); from_ += SUM_RUN) {                                         \
        const ptrdiff_t to_ = (n) - from_ < SUM_RUN ? (n) : from_ + SUM_RUN;                           \
        T one_[SUM_LANES] = {0};                                                                       \
        T two_[SUM_LANES] = {0};                                                                       \
        ptrdiff_t base_ = from_;                                                                       \
        for (; base_ + SUM_LANES <= to_; base_ += SUM_LANES)                                           \
            for (int l = 0; l < SUM_LANES; l++) {                                                      \
                const ptrdiff_t i = base_ + l;                                                         \
                one_[l] += (expression1);                                                              \
                two_[l] += (expression2);                                                              \
            }                                                                                          \
        for (ptrdiff_t i = base_; i < to_; i++) {                                                      \
            one_[i - base_] += (expression1);                                                          \
            two_[i - base_] += (expression2);                                                          \
        }                                                                                              \
        FOLD(one_, first)                                                                              \
        FOLD(two_, second)                                                                             \
    }

#endif
