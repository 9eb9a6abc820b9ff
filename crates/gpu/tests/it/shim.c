/* Runs the kernels' text as plain C: lane by lane, group by group, each group twice, first up to its
 * barrier. Compiled and called by kernel_text.rs. */

#include "../../kernels/wattlock.c"

#include <stdlib.h>
#include <string.h>

#define LOCAL_BYTES 139264

/* The memory of a group is not initialised. */
#define RUN(call)                                                                             \
    u32 *memory = malloc(LOCAL_BYTES);                                                        \
    shim.local = memory;                                                                      \
    shim.groups = groups;                                                                     \
    shim.local_size = group_size;                                                             \
    for (shim.group = 0; shim.group < groups; shim.group++) {                                 \
        memset(memory, 0xa5, LOCAL_BYTES);                                                    \
        for (shim.pass = 0; shim.pass < 2; shim.pass++) {                                     \
            for (shim.local_id = 0; shim.local_id < group_size; shim.local_id++) {            \
                call;                                                                         \
            }                                                                                 \
        }                                                                                     \
    }                                                                                         \
    free(memory)

#define LAUNCH(kernel, arguments, ...)                                                        \
    void launch_##kernel(u32 groups, u32 group_size, __VA_ARGS__)                             \
    {                                                                                         \
        RUN(kernel arguments);                                                                \
    }

#define KEYS const u32 *k, u32 rounds, const u32x4 *in, u32x4 *out

#define LAUNCH_KIND(kind)                                                                     \
    LAUNCH(wattlock_ctr_##kind, (k, rounds, in, out, high, low, start, end, shift),                \
           KEYS, u64 high, u64 low, u64 start, u64 end, u32 shift)                                     \
    LAUNCH(wattlock_ctr_extended_##kind, (k, rounds, in, out, high, low, start, end, each, shift),\
           KEYS, u64 high, u64 low, u64 start, u64 end, u32 each, u32 shift)                           \
    LAUNCH(wattlock_ecb_encrypt_##kind, (k, rounds, in, out, blocks, shift), KEYS, u64 blocks, u32 shift)       \
    LAUNCH(wattlock_ecb_decrypt_##kind, (k, rounds, in, out, blocks, shift), KEYS, u64 blocks, u32 shift)       \
    LAUNCH(wattlock_cbc_encrypt_##kind, (k, rounds, in, out, ivs, blocks, message_blocks, shift),\
           KEYS, const u32x4 *ivs, u64 blocks, u32 message_blocks, u32 shift)                           \
    LAUNCH(wattlock_cbc_decrypt_##kind, (k, rounds, in, out, ivs, blocks, message_blocks, shift),\
           KEYS, const u32x4 *ivs, u64 blocks, u32 message_blocks, u32 shift)                           \
    LAUNCH(wattlock_gcm_ctr_##kind,                                                           \
           (k, rounds, in, out, nonces, masks, chunks, chunk_len, last_len, shift),               \
           KEYS, const u32x4 *nonces, u32x4 *masks, u32 chunks, u32 chunk_len, u32 last_len,\
           u32 shift)

LAUNCH_KIND(t0)
LAUNCH_KIND(t4)
LAUNCH(wattlock_ghash, (hash_key, ciphertext, partials, chunks, chunk_len, last_len, shift),
       const u32x4 *hash_key, const u32x4 *ciphertext, u32x4 *partials, u32 chunks,
       u32 chunk_len, u32 last_len, u32 shift)
LAUNCH(wattlock_gcm_tags, (partials, masks, tags, chunks, shift), const u32x4 *partials,
       const u32x4 *masks, u32x4 *tags, u32 chunks, u32 shift)
LAUNCH(wattlock_check, (input, first, second, sums, start, end, stride, a, b, c, d),
       const u32x4 *input, const u32x4 *first, const u32x4 *second, u64 *sums, u64 start, u64 end,
       u32 stride, u64 a, u64 b, u64 c, u64 d)
