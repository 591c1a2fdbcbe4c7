#include "normalization_batch.h"

#include <math.h>
#include <string.h>

#include "moments.h"
#include "parallel.h"
#include "types.h"

/* Statistics go through the memory once, in pieces that stay in the cache and whose moments are put together in double.
   What adds up in a piece does so in many lanes, and is short enough to be exact. */
enum { LANES = 32, PIECE = 4096, MOST_ROWS = 256, LEAST_ROWS = 8, RUN = 512, SHORT_PLANE = 512 };

/* How many rows of channels make a piece. */
static ptrdiff_t rows_of_a_piece(ptrdiff_t channels) {
    const ptrdiff_t rows = 4 * PIECE / channels;
    return rows < LEAST_ROWS ? LEAST_ROWS : rows > MOST_ROWS ? MOST_ROWS : rows;
}

/* The widths of blocks of channels whose sums stay in registers: as many of the widest as there are. */
#define BLOCKS(channels, CALL)                                                                         \
    do {                                                                                               \
        ptrdiff_t at = 0;                                                                              \
        for (; at + 64 <= (channels); at += 64) { CALL(64); }                                          \
        for (; at + 16 <= (channels); at += 16) { CALL(16); }                                          \
        for (; at + 4 <= (channels); at += 4) { CALL(4); }                                             \
        for (; at < (channels); at++) { CALL(1); }                                                     \
    } while (0)

#define ALWAYS static inline __attribute__((always_inline))

/* The elements as numbers of T: themselves, or converted into memory of `count`, in which the results have room. */
#define HELD(name, count)
#define VIEW(held, x, count) (x)
#define FILL(to, x, count) memcpy(to, x, (size_t)(count) * sizeof(*(x)))
#define ROOM(held, to) (to)
#define PUT(to, held, count)
#define T float
#define E float
#define OF(name) name##_F32
#define OF_RUN(name) name##_F32
#include "normalization_batch_body.h"
#undef T
#undef E
#undef OF
#define T double
#define E double
#define OF(name) name##_F64
#undef OF_RUN
#define OF_RUN(name) name##_F64
#include "normalization_batch_body.h"
#undef HELD
#undef VIEW
#undef FILL
#undef ROOM
#undef PUT
#undef T
#undef E
#undef OF
#define HELD(name, count) T name[count];
#define ROOM(held, to) (held)
#define T float
#define E uint16_t
#define VIEW(held, x, count) (widen_BF16(held, x, count), held)
#define FILL(to, x, count) widen_BF16(to, x, count)
#define PUT(to, held, count) narrow_run_BF16(to, held, count)
#define OF(name) name##_BF16
#undef OF_RUN
#define OF_RUN(name) name##_F32
#include "normalization_batch_body.h"
#undef VIEW
#undef FILL
#undef PUT
#undef OF
#define VIEW(held, x, count) (widen_F16(held, x, count), held)
#define FILL(to, x, count) widen_F16(to, x, count)
#define PUT(to, held, count) narrow_run_F16(to, held, count)
#define OF(name) name##_F16
#include "normalization_batch_body.h"

#define ALL(name) {name##_F32, name##_F64, name##_BF16, name##_F16}
const tp_batch_kernels LEVEL(tp_batch_table) = {
    .forward = ALL(forward), .backward = ALL(backward), .by_statistics = ALL(by_statistics)};
