/* Reading from, writing to and combining with the places that an index tells.

   All is brought to three dimensions: (before, n, after) is the shape of the index, along n of which places
   are told. The indexed array has `size` of them, `data_strides[1]` bytes apart. */
#ifndef TENSORPLUG_PLACES_H
#define TENSORPLUG_PLACES_H

#include "level.h"
#include "types.h"

typedef struct {
    char *data;        /* what is indexed */
    char *other;       /* what is read into, or written from */
    const char *index; /* int64 */
    ptrdiff_t count[3];
    ptrdiff_t data_strides[3], other_strides[3], index_strides[3];
    int64_t size;
    int64_t wrap; /* `size` where negative places count from the end, else 0 */
    int64_t skip; /* a place that is left out of sums; -1 for none */
} tp_indices;

enum tp_combine { TP_ADD, TP_MULTIPLY, TP_MAXIMUM, TP_MINIMUM, TP_COMBINES };
enum { TP_WIDTHS = 5 }; /* 1, 2, 4, 8 and 16 bytes */
enum { TP_PARTS = 64 }; /* of a mask: more than there are threads that help */

typedef int (*tp_scatter)(const tp_indices *p, int threads);

typedef struct {
    /* Whether all places exist. */
    int (*fits)(const tp_indices *p, int threads);
    /* Read; returns whether all places exist, and reads none that do not. */
    int (*gather[TP_WIDTHS])(const tp_indices *p, int threads);
    /* Write, and combine; the last of several that are written stays. Return whether all places exist, but
       unless tp_checks(p) they all must. */
    tp_scatter scatter[TP_WIDTHS];
    tp_scatter combine[TP_COMBINES][TP_ELEMENTS];
    /* Add index * step to each offset; returns whether all places exist. */
    int (*offsets)(int64_t *offsets, const int64_t *index, ptrdiff_t count, int64_t size, ptrdiff_t step,
                   int threads);
    void (*clear)(char *data, ptrdiff_t bytes, int threads);
    /* Of each of TP_PARTS parts of a mask, how many elements before it are true; of all, at the end. */
    void (*count_true)(const char *mask, ptrdiff_t count, ptrdiff_t *starts, int threads);
    /* Copy the elements at which the mask is true to neighbouring places. */
    void (*choose[TP_WIDTHS])(char *to, const char *from, const char *mask, ptrdiff_t count,
                              const ptrdiff_t *starts, int threads);
} tp_index_kernels;

/* Whether scatter checks places before it writes there, so that what is new anyway needs no other check. */
static inline int tp_checks(const tp_indices *p) {
    return p->count[2] == 1 && p->index_strides[1] == sizeof(int64_t);
}

TP_DECLARE(const tp_index_kernels, tp_index_table);

#endif
