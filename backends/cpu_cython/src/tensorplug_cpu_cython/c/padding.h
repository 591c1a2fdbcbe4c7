/* A copy of an array with a number around it, written once from its first element to its last one. */
#ifndef TENSORPLUG_PADDING_H
#define TENSORPLUG_PADDING_H

#include <stddef.h>

/* Along each dimension of the result: elements of the number, of the array, and of the number again. */
typedef struct {
    int dims;
    ptrdiff_t before[64], kept[64], behind[64];
    ptrdiff_t step[64];  /* bytes from one position of the array to the next; in the last dimension, an element */
    ptrdiff_t below[64]; /* elements of the result in one position */
    char number[16];
} tp_padding;

/* Take dimensions together that lie in memory as one. */
void tp_simplify_padding(tp_padding *padding);

/* Write the result. Return 0 for a size of elements that there is no loop for. */
int tp_pad(char *to, const char *from, const tp_padding *padding, int itemsize, int threads);

#endif
