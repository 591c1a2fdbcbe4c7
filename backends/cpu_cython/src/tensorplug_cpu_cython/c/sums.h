/* Sums over a row: in lanes, so that they are vectorised, and in short runs, so that they are exact. */
#ifndef TENSORPLUG_SUMS_H
#define TENSORPLUG_SUMS_H

/* What is left behind whole lanes goes by fours: single elements that are put to vectors in memory hold these up. */
enum { SUM_LANES = 32, SUM_FEW = 4, SUM_RUN = 4096 };

#define FOLD(lanes, count)                                                                             \
    _Pragma("GCC unroll 8") for (int half = (count) / 2; half; half /= 2)                              \
        for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];

/* Declare `total` as the sum of an expression of i, from 0 to n. */
#define SUM_ROW(T, n, total, expression)                                                               \
    double total = 0;                                                                                  \
    for (ptrdiff_t from_ = 0; from_ < (n); from_ += SUM_RUN) {                                         \
        const ptrdiff_t to_ = (n) - from_ < SUM_RUN ? (n) : from_ + SUM_RUN;                           \
        T lanes_[SUM_LANES] = {0};                                                                     \
        T few_[SUM_FEW] = {0};                                                                         \
        T last_ = 0;                                                                                   \
        ptrdiff_t base_ = from_;                                                                       \
        for (; base_ + SUM_LANES <= to_; base_ += SUM_LANES)                                           \
            for (int l = 0; l < SUM_LANES; l++) { const ptrdiff_t i = base_ + l; lanes_[l] += (expression); } \
        for (; base_ + SUM_FEW <= to_; base_ += SUM_FEW)                                               \
            for (int l = 0; l < SUM_FEW; l++) { const ptrdiff_t i = base_ + l; few_[l] += (expression); } \
        for (ptrdiff_t i = base_; i < to_; i++) last_ += (expression);                                 \
        FOLD(lanes_, SUM_LANES)                                                                        \
        FOLD(few_, SUM_FEW)                                                                            \
        total += lanes_[0] + (few_[0] + last_);                                                        \
    }

/* The same for two expressions at once. */
#define SUM_BOTH(T, n, first, expression1, second, expression2)                                        \
    double first = 0;                                                                                  \
    double second = 0;                                                                                 \
    for (ptrdiff_t from_ = 0; from_ < (n); from_ += SUM_RUN) {                                         \
        const ptrdiff_t to_ = (n) - from_ < SUM_RUN ? (n) : from_ + SUM_RUN;                           \
        T one_[SUM_LANES] = {0};                                                                       \
        T two_[SUM_LANES] = {0};                                                                       \
        T few_one_[SUM_FEW] = {0};                                                                     \
        T few_two_[SUM_FEW] = {0};                                                                     \
        T last_one_ = 0;                                                                               \
        T last_two_ = 0;                                                                               \
        ptrdiff_t base_ = from_;                                                                       \
        for (; base_ + SUM_LANES <= to_; base_ += SUM_LANES)                                           \
            for (int l = 0; l < SUM_LANES; l++) {                                                      \
                const ptrdiff_t i = base_ + l;                                                         \
                one_[l] += (expression1);                                                              \
                two_[l] += (expression2);                                                              \
            }                                                                                          \
        for (; base_ + SUM_FEW <= to_; base_ += SUM_FEW)                                               \
            for (int l = 0; l < SUM_FEW; l++) {                                                        \
                const ptrdiff_t i = base_ + l;                                                         \
                few_one_[l] += (expression1);                                                          \
                few_two_[l] += (expression2);                                                          \
            }                                                                                          \
        for (ptrdiff_t i = base_; i < to_; i++) {                                                      \
            last_one_ += (expression1);                                                                \
            last_two_ += (expression2);                                                                \
        }                                                                                              \
        FOLD(one_, SUM_LANES)                                                                          \
        FOLD(two_, SUM_LANES)                                                                          \
        FOLD(few_one_, SUM_FEW)                                                                        \
        FOLD(few_two_, SUM_FEW)                                                                        \
        first += one_[0] + (few_one_[0] + last_one_);                                                  \
        second += two_[0] + (few_two_[0] + last_two_);                                                 \
    }

#endif
