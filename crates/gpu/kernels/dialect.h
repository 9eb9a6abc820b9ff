/* The three languages that the kernels are compiled as, under one set of names:
 *
 *   OpenCL C        at run time, by the driver
 *   CUDA-style C    by clang to PTX, without any file of NVIDIA's
 *   plain C         by the tests, which run it lane by lane on the CPU
 *
 * Little-endian machines only, which all of them are. */

#if defined(__OPENCL_C_VERSION__) && !defined(__CUDA__)

typedef uchar u8;
typedef uint u32;
typedef ulong u64;
typedef uint4 u32x4;
#define WORDS(x, y, z, w) (u32x4)(x, y, z, w)

/* Inlined by force: PoCL 3.1 gives a function that it calls zeros for the group's memory. */
#define FN static inline __attribute__((always_inline))
#define KERNEL(name) __kernel __attribute__((reqd_work_group_size(WL_GROUP, 1, 1))) void name
#define CONSTANT __constant
#define CONSTANT_POINTER __constant const u32 *
#define GLOBAL __global
#define RESTRICT restrict
#define ROUND_KEYS __constant const u32 *round_keys,
#define USE_ROUND_KEYS
#define LOCAL_ID ((u32)get_local_id(0))
#define LOCAL_SIZE ((u32)get_local_size(0))
#define GROUP_ID ((u32)get_group_id(0))
#define GROUPS ((u32)get_num_groups(0))
#define GLOBAL_SIZE ((u64)get_global_size(0))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)

/* The group's own memory. */
#define LOCAL_MEMORY __local u32 *
#define USE_LOCAL_MEMORY(name, count) __local u32 name[count]
#define LOCAL_LOAD(memory, address, offset) ((memory)[((address) + (offset)) >> 2])
#define LOCAL_STORE(memory, word, value) ((memory)[word] = (value))

#elif defined(__CUDA__)

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
#define WORDS(x, y, z, w) (u32x4){x, y, z, w}

#define FN static inline __attribute__((device, always_inline))
#define KERNEL(name) extern "C" __attribute__((global, launch_bounds(1024))) void name
#define CONSTANT static __attribute__((constant))
#define CONSTANT_POINTER const u32 *
#define GLOBAL
#define RESTRICT __restrict__
/* In constant memory, where an instruction can take it as an operand and the host can wipe it. */
extern "C" {
__attribute__((constant)) u32 wattlock_round_keys[60];
}
#define ROUND_KEYS
#define USE_ROUND_KEYS const u32 *const round_keys = wattlock_round_keys
#define LOCAL_ID ((u32)__nvvm_read_ptx_sreg_tid_x())
#define LOCAL_SIZE ((u32)__nvvm_read_ptx_sreg_ntid_x())
#define GROUP_ID ((u32)__nvvm_read_ptx_sreg_ctaid_x())
#define GROUPS ((u32)__nvvm_read_ptx_sreg_nctaid_x())
#define GLOBAL_SIZE ((u64)__nvvm_read_ptx_sreg_nctaid_x() * LOCAL_SIZE)
#define BARRIER() __syncthreads()

/* Dynamic shared memory, as a 32-bit address: loads are written out so that the choice of a table
 * stays in the immediate offset. They are volatile because only that keeps them behind the
 * barrier; the assembler reorders them all the same. */
extern "C" __attribute__((shared)) u32 wattlock_shared[];
#define LOCAL_MEMORY u32
#define USE_LOCAL_MEMORY(name, count) const u32 name = wattlock_shared_address()
FN u32 wattlock_shared_address(void)
{
    return (u32)(u64)(__attribute__((address_space(3))) u32 *)wattlock_shared;
}
#define LOCAL_LOAD(memory, address, offset) \
    (__extension__({ \
        u32 value_; \
        __asm__ volatile("ld.shared.u32 %0, [%1+%2];" \
                         : "=r"(value_) : "r"((memory) + (address)), "n"(offset)); \
        value_; \
    }))
#define LOCAL_STORE(memory, word, value) \
    __asm__ volatile("st.shared.u32 [%0], %1;" ::"r"((memory) + 4 * (word)), "r"(value) : "memory")

#else

#include <stdint.h>
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef struct { u32 x, y, z, w; } u32x4;
#define WORDS(x, y, z, w) (u32x4){x, y, z, w}

#define FN static inline
#define KERNEL(name) void name
#define CONSTANT static
#define CONSTANT_POINTER const u32 *
#define GLOBAL
#define RESTRICT restrict
#define ROUND_KEYS const u32 *round_keys,
#define USE_ROUND_KEYS
/* Set by the shim before each call. A lane runs up to the barrier in the first pass over the
 * group, and all of the kernel in the second; what stands before a barrier may run twice. */
static _Thread_local struct { u64 group, groups; u32 local_id, local_size, pass; u32 *local; } shim;
#define LOCAL_ID shim.local_id
#define LOCAL_SIZE shim.local_size
#define GROUP_ID ((u32)shim.group)
#define GROUPS ((u32)shim.groups)
#define GLOBAL_SIZE (shim.groups * shim.local_size)
#define BARRIER() do { if (shim.pass == 0) return; } while (0)
#define LOCAL_MEMORY u32 *
#define USE_LOCAL_MEMORY(name, count) u32 *const name = shim.local
#define LOCAL_LOAD(memory, address, offset) ((memory)[((address) + (offset)) >> 2])
#define LOCAL_STORE(memory, word, value) ((memory)[word] = (value))

#endif

/* Loops over blocks stay loops: other lanes hide what a longer body would. */
#if defined(__CUDA__)
#define ROLLED _Pragma("clang loop unroll(disable)")
#else
#define ROLLED
#endif

/* Lanes that run in step and have memory banks of their own. */
#define LANES 32u

#define BYTE(word, n) (((word) >> (8 * (n))) & 0xffu)
#define ROTATE(word, bits) (((word) << (bits)) | ((word) >> (32 - (bits))))

/* The number of this lane among all, where group 0 does the work of group `shift`, and so on. A
 * second run with another shift has other multiprocessors compute the same blocks. */
FN u64 lane_number(u32 shift)
{
    u32 group = GROUP_ID + shift;
    group -= group < GROUPS ? 0 : GROUPS;
    return (u64)group * LOCAL_SIZE + LOCAL_ID;
}

FN u32 byte_swap(u32 word)
{
    return (word >> 24) | ((word >> 8) & 0xff00u) | ((word << 8) & 0xff0000u) | (word << 24);
}

FN u32x4 words(u32 x, u32 y, u32 z, u32 w)
{
    return WORDS(x, y, z, w);
}

FN u32x4 xor4(u32x4 a, u32x4 b)
{
    return words(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}

/* Word `n` of a block, without an array that would have to live in memory. */
FN u32 word_of(u32x4 block, u32 n)
{
    return n < 2 ? (n == 0 ? block.x : block.y) : (n == 2 ? block.z : block.w);
}

/* Block `block` of `in`, of which only the bytes from `start` to `end` are read; the others are
 * zero. */
FN u32x4 load_block(GLOBAL const u32x4 *in, u64 block, u64 start, u64 end)
{
    u64 first = block << 4;
    if (first >= start && first + 16 <= end) {
        return in[block];
    }
    GLOBAL const u8 *bytes = (GLOBAL const u8 *)in;
    u32x4 loaded = words(0, 0, 0, 0);
    ROLLED
    for (u32 n = 0; n < 16; n++) {
        if (first + n >= start && first + n < end) {
            u32 byte = (u32)bytes[first + n] << (8 * (n & 3));
            loaded.x |= n < 4 ? byte : 0;
            loaded.y |= n >> 2 == 1 ? byte : 0;
            loaded.z |= n >> 2 == 2 ? byte : 0;
            loaded.w |= n >> 2 == 3 ? byte : 0;
        }
    }
    return loaded;
}

/* Block `block` of `out`, of which only the bytes from `start` to `end` are written. */
FN void store_block(GLOBAL u32x4 *out, u64 block, u32x4 value, u64 start, u64 end)
{
    u64 first = block << 4;
    if (first >= start && first + 16 <= end) {
        out[block] = value;
        return;
    }
    GLOBAL u8 *bytes = (GLOBAL u8 *)out;
    ROLLED
    for (u32 n = 0; n < 16; n++) {
        if (first + n >= start && first + n < end) {
            bytes[first + n] = (u8)(word_of(value, n >> 2) >> (8 * (n & 3)));
        }
    }
}
