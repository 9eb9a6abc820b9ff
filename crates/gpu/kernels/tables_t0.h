/* One table of words, with a copy for each of the 32 lanes that run in step, so that no two of
 * them ever want the same bank: 32 KiB. Entry `e` of lane `l` is word 32 e + l. The other three
 * tables of a direction are this one rotated. */

#define TABLE_WORDS 8192u

FN void V(fill_entry)(LOCAL_MEMORY tables, u32 entry, u32 copy, u32 value)
{
    LOCAL_STORE(tables, 32 * entry + copy, value);
}

/* Table `n` at byte `n` of `word`, where `lane4` is the lane times four. */
#define LOOK_T0(n, word) \
    ROTATE_TABLE_T0(n, LOCAL_LOAD(tables, (BYTE(word, n) << 7) | lane4, 0))
#define ROTATE_TABLE_T0(n, value) ((n) == 0 ? (value) : rotate_table_t0(value, 8 * (n)))
FN u32 rotate_table_t0(u32 value, u32 bits)
{
    return (value << bits) | (value >> ((32 - bits) & 31));
}

/* The S-boxes of bytes 0 to 3 of four words, as the bytes of one: an entry holds the S-box in its
 * two middle bytes. */
FN u32 V(substitute)(LOCAL_MEMORY tables, u32 lane4, u32 a, u32 b, u32 c, u32 d)
{
    u32 s0 = LOCAL_LOAD(tables, (BYTE(a, 0) << 7) | lane4, 0);
    u32 s1 = LOCAL_LOAD(tables, (BYTE(b, 1) << 7) | lane4, 0);
    u32 s2 = LOCAL_LOAD(tables, (BYTE(c, 2) << 7) | lane4, 0);
    u32 s3 = LOCAL_LOAD(tables, (BYTE(d, 3) << 7) | lane4, 0);
    return ((s0 >> 8) & 0xffu) | (s1 & 0xff00u) | (s2 & 0xff0000u) | ((s3 << 8) & 0xff000000u);
}
