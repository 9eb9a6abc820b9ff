/* How fast a GPU does what the kernels are made of: byte permutes, three-input XORs, loads from
 * shared memory. Eight chains that do not wait for each other in each lane, 64 steps of each in a
 * turn, so that what the loop costs does not count. For `bench/gpu.sh`; CUDA only. */

#include "dialect.h"

/* Each chain takes from its neighbour, so that no two steps can be made one. */
#define EIGHT(step) \
    step(0, 1) step(1, 2) step(2, 3) step(3, 4) step(4, 5) step(5, 6) step(6, 7) step(7, 0)
#define SIXTY_FOUR(step) \
    EIGHT(step) EIGHT(step) EIGHT(step) EIGHT(step) EIGHT(step) EIGHT(step) EIGHT(step) EIGHT(step)

#define CHAINS(first) \
    u32 a0 = (first), a1 = a0 + 1, a2 = a0 + 2, a3 = a0 + 3, a4 = a0 + 4, a5 = a0 + 5, \
        a6 = a0 + 6, a7 = a0 + 7
/* Never true, which the compiler does not know. */
#define KEEP() \
    if ((a0 ^ a1 ^ a2 ^ a3 ^ a4 ^ a5 ^ a6 ^ a7) == 0x12345678u && turns == 0xffffffffu) \
        out[0] = a0

#define PERMUTE(n, m) \
    __asm__ volatile("prmt.b32 %0, %0, %1, %2;" : "+r"(a##n) : "r"(a##m), "r"(selector));
KERNEL(wattlock_rate_prmt)(GLOBAL u32 *out, u32 turns, u32 selector)
{
    CHAINS(LOCAL_ID);
    ROLLED
    for (u32 turn = 0; turn < turns; turn++) {
        SIXTY_FOUR(PERMUTE)
    }
    KEEP();
}

#define XOR3(n, m) \
    __asm__ volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(a##n) : "r"(a##m), "r"(selector));
KERNEL(wattlock_rate_lop3)(GLOBAL u32 *out, u32 turns, u32 selector)
{
    CHAINS(LOCAL_ID);
    ROLLED
    for (u32 turn = 0; turn < turns; turn++) {
        SIXTY_FOUR(XOR3)
    }
    KEEP();
}

/* What is loaded is the address of the next load: it stays in the lane's own bank. */
#define LOAD(n, m) __asm__ volatile("ld.shared.u32 %0, [%0+0];" : "+r"(a##n));
KERNEL(wattlock_rate_shared)(GLOBAL u32 *out, u32 turns, u32 selector)
{
    (void)selector;
    USE_LOCAL_MEMORY(tables, 8192);
    for (u32 i = LOCAL_ID; i < 8192; i += LOCAL_SIZE) {
        LOCAL_STORE(tables, i, tables + 4 * ((i + 32 * 37) & 8191));
    }
    BARRIER();
    CHAINS(tables + 4 * (LOCAL_ID & 31));
    a1 = a0 + 128, a2 = a0 + 256, a3 = a0 + 384, a4 = a0 + 512, a5 = a0 + 640, a6 = a0 + 768;
    a7 = a0 + 896;
    ROLLED
    for (u32 turn = 0; turn < turns; turn++) {
        SIXTY_FOUR(LOAD)
    }
    KEEP();
}

/* A quarter of a column of a round: permute, load, XOR. */
#define LOOK_UP(n, m) \
    __asm__ volatile("{ .reg .b32 t; prmt.b32 t, %0, %1, 0x5504; add.u32 t, t, %3; " \
                     "ld.shared.u32 t, [t]; lop3.b32 %0, t, %0, %2, 0x96; }" \
                     : "+r"(a##n) : "r"(lane4), "r"(a##m), "r"(tables));
KERNEL(wattlock_rate_look_up)(GLOBAL u32 *out, u32 turns, u32 selector)
{
    (void)selector;
    USE_LOCAL_MEMORY(tables, 16384);
    for (u32 i = LOCAL_ID; i < 16384; i += LOCAL_SIZE) {
        LOCAL_STORE(tables, i, i * 0x9e3779b9u);
    }
    BARRIER();
    const u32 lane4 = (LOCAL_ID & 31) * 4;
    CHAINS(LOCAL_ID);
    ROLLED
    for (u32 turn = 0; turn < turns; turn++) {
        SIXTY_FOUR(LOOK_UP)
    }
    KEEP();
}
