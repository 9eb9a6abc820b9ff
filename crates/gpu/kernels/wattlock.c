/* All kernels: both kinds of tables, for CUDA and for the tests. OpenCL is given the same files
 * one after the other, with one kind; README.md says what is in each. */

#include "dialect.h"
#include "s_box.h"

#define V(name) name##_t0
#define LOOK(n, word) LOOK_T0(n, word)
#include "tables_t0.h"
#include "aes.h"
#undef V
#undef LOOK

#define V(name) name##_t4
#define LOOK(n, word) LOOK_T4(n, word)
#include "tables_t4.h"
#include "aes.h"
#undef V
#undef LOOK

#include "ghash.h"
#include "check.h"
