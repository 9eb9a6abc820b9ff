/* Four tables of words, each with a copy for each of the 32 lanes that run in step: 128 KiB. An
 * entry is 256 bytes long: 32 copies of table 0, then 32 of table 1; tables 2 and 3 stand the same
 * way 64 KiB further on. The address of a look-up is then the bytes {lane * 4, index, 0, 0}, which
 * is one byte permute of the state, and the table is the offset of the load. */

#define TABLE_WORDS 32768u

FN void V(fill_entry)(LOCAL_MEMORY tables, u32 entry, u32 copy, u32 value)
{
    LOCAL_STORE(tables, 64 * entry + copy, value);
    LOCAL_STORE(tables, 64 * entry + copy + 32, ROTATE(value, 8));
    LOCAL_STORE(tables, 64 * entry + copy + 16384, ROTATE(value, 16));
    LOCAL_STORE(tables, 64 * entry + copy + 16416, ROTATE(value, 24));
}

#if defined(__CUDA__)
#define ADDRESS_T4(n, word) __nvvm_prmt(word, lane4, 0x5504 | (n) << 4)
#define MERGE_T4(a, b, selector) __nvvm_prmt(a, b, selector)
#else
#define ADDRESS_T4(n, word) ((BYTE(word, n) << 8) | lane4)
#endif

#define OFFSET_T4(n) (((n) & 1) * 128 + ((n) >> 1) * 65536)

/* Table `n` at byte `n` of `word`, where `lane4` is the lane times four. */
#define LOOK_T4(n, word) LOCAL_LOAD(tables, ADDRESS_T4(n, word), OFFSET_T4(n))

/* The S-boxes of bytes 0 to 3 of four words, as the bytes of one: they stand in bytes 1 and 2 of
 * table 0, and in bytes 0 and 3 of table 2. */
FN u32 V(substitute)(LOCAL_MEMORY tables, u32 lane4, u32 a, u32 b, u32 c, u32 d)
{
    u32 s0 = LOCAL_LOAD(tables, ADDRESS_T4(0, a), OFFSET_T4(2));
    u32 s1 = LOCAL_LOAD(tables, ADDRESS_T4(1, b), OFFSET_T4(0));
    u32 s2 = LOCAL_LOAD(tables, ADDRESS_T4(2, c), OFFSET_T4(0));
    u32 s3 = LOCAL_LOAD(tables, ADDRESS_T4(3, d), OFFSET_T4(2));
#if defined(__CUDA__)
    return MERGE_T4(MERGE_T4(s0, s1, 0x0050), MERGE_T4(s2, s3, 0x7200), 0x7610);
#else
    return (s0 & 0xffu) | (s1 & 0xff00u) | (s2 & 0xff0000u) | (s3 & 0xff000000u);
#endif
}
