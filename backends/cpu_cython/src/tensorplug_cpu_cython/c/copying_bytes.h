/* Copies of rows. */
#ifndef TP_BYTES_H
#define TP_BYTES_H

#include <stddef.h>
#include <string.h>

/* Line by line: glibc copies thousands of bytes by `rep movsb`, which takes twice the time where both places differ a
   little in their offset within a page, and short rows would take a call for each. */
static inline void copy_bytes(char *to, const char *from, ptrdiff_t bytes) {
    enum { LINE = 64 };
    ptrdiff_t i = 0;
    for (; i + LINE <= bytes; i += LINE) memcpy(to + i, from + i, LINE);
    if (i < bytes) memcpy(to + i, from + i, (size_t)(bytes - i));
}

#endif
