/* Each kernel file is compiled once per SIMD level; what it exports carries the level in its name.

   TP_LEVEL is the level of this compilation (v2, v3, v4 or plain). TP_LEVELS is defined where the three
   x86-64 levels exist, in every file, so that TP_CHOOSE can pick one of them at run time. */
#ifndef TENSORPLUG_LEVEL_H
#define TENSORPLUG_LEVEL_H

#include <stddef.h>
#include <stdint.h>

#define TP_JOIN2(name, level) name##_##level
#define TP_JOIN(name, level) TP_JOIN2(name, level)
#define LEVEL(name) TP_JOIN(name, TP_LEVEL)

#ifdef TP_LEVELS
#define TP_DECLARE(type, name) extern type name##_v2, name##_v3, name##_v4
#define TP_CHOOSE(name, level) ((level) >= 4 ? &name##_v4 : (level) == 3 ? &name##_v3 : &name##_v2)
#else
#define TP_DECLARE(type, name) extern type name##_plain
#define TP_CHOOSE(name, level) (&name##_plain)
#endif

/* No element of the loop depends on another one: vectorise, also where output and input are one array. */
#define INDEPENDENT _Pragma("GCC ivdep")

#endif
