/* GHASH (SP 800-38D, 6.4) of many chunks, and their tags.
 *
 * 32 lanes share a chunk: lane l takes every 32nd block, and multiplies by H^32 in between. Two
 * tables of 16 entries hold the multiples of H^32 by a byte's upper and lower half, with a copy
 * for each lane, so that its look-ups never meet another's. At the end each lane multiplies by the
 * power of H that its last block is away from the end.
 *
 * An element is four words, the most significant (x^0 to x^31) first.
 *
 * `hash_key` holds 32 entries of those tables, upper halves first, and then H^1 to H^32. */

#define GHASH_WORDS 4096u

FN u32x4 swap4(u32x4 block)
{
    return words(byte_swap(block.x), byte_swap(block.y), byte_swap(block.z), byte_swap(block.w));
}

#define GHASH_LOOK(entry, word) \
    LOCAL_LOAD(tables, ((entry) << 9) | lane4, 128 * (word))

/* One byte of the multiplier: shift by a byte, fold what falls out (x^128 = x^7 + x^2 + x + 1),
 * add the multiples. */
FN u32x4 ghash_byte(LOCAL_MEMORY tables, u32 lane4, u32x4 z, u32 byte)
{
    u32 upper = byte >> 4;
    u32 lower = (byte & 15) + 16;
    u32 out = z.w & 0xffu;
    u32 folded = (out << 24) ^ (out << 23) ^ (out << 22) ^ (out << 17);
    return words((z.x >> 8) ^ folded ^ GHASH_LOOK(upper, 0) ^ GHASH_LOOK(lower, 0),
                 ((z.y >> 8) | (z.x << 24)) ^ GHASH_LOOK(upper, 1) ^ GHASH_LOOK(lower, 1),
                 ((z.z >> 8) | (z.y << 24)) ^ GHASH_LOOK(upper, 2) ^ GHASH_LOOK(lower, 2),
                 ((z.w >> 8) | (z.z << 24)) ^ GHASH_LOOK(upper, 3) ^ GHASH_LOOK(lower, 3));
}

FN u32x4 ghash_word(LOCAL_MEMORY tables, u32 lane4, u32x4 z, u32 word)
{
    z = ghash_byte(tables, lane4, z, word & 0xffu);
    z = ghash_byte(tables, lane4, z, (word >> 8) & 0xffu);
    z = ghash_byte(tables, lane4, z, (word >> 16) & 0xffu);
    return ghash_byte(tables, lane4, z, word >> 24);
}

/* `y` times H^32. */
FN u32x4 ghash_step(LOCAL_MEMORY tables, u32 lane4, u32x4 y)
{
    u32x4 z = words(0, 0, 0, 0);
    z = ghash_word(tables, lane4, z, y.w);
    z = ghash_word(tables, lane4, z, y.z);
    z = ghash_word(tables, lane4, z, y.y);
    return ghash_word(tables, lane4, z, y.x);
}

/* The product of any two elements, by its definition (6.3), without a branch on either. */
FN u32x4 ghash_times(u32x4 a, u32x4 b)
{
    u32x4 z = words(0, 0, 0, 0);
    ROLLED
    for (u32 i = 0; i < 128; i++) {
        u32 set = 0u - ((word_of(a, i >> 5) >> (31 - (i & 31))) & 1u);
        z = xor4(z, words(b.x & set, b.y & set, b.z & set, b.w & set));
        u32 out = 0u - (b.w & 1u);
        b = words((b.x >> 1) ^ (out & 0xe1000000u), (b.y >> 1) | (b.x << 31),
                  (b.z >> 1) | (b.y << 31), (b.w >> 1) | (b.z << 31));
    }
    return z;
}

/* What each lane has of the GHASH of each chunk. Chunks stand as in `wattlock_gcm_ctr`. */
KERNEL(wattlock_ghash)(GLOBAL const u32x4 *hash_key, GLOBAL const u32x4 *ciphertext,
                       GLOBAL u32x4 *partials, u32 chunks, u32 chunk_len, u32 last_len,
                       u32 shift)
{
    USE_LOCAL_MEMORY(tables, GHASH_WORDS);
    for (u32 i = LOCAL_ID; i < 32 * LANES; i += LOCAL_SIZE) {
        u32x4 entry = hash_key[i >> 5];
        u32 first = (i >> 5) * 128 + (i & 31);
        LOCAL_STORE(tables, first, entry.x);
        LOCAL_STORE(tables, first + 32, entry.y);
        LOCAL_STORE(tables, first + 64, entry.z);
        LOCAL_STORE(tables, first + 96, entry.w);
    }
    BARRIER();
    const u32 lane = LOCAL_ID & 31;
    const u32 lane4 = lane * 4;
    const u32x4 power = hash_key[32 + (31 - lane)];
    const u32 stride = (chunk_len >> 4) + 1;
    ROLLED
    for (u64 unit = lane_number(shift) >> 5; unit < chunks; unit += GLOBAL_SIZE >> 5) {
        u32 chunk = (u32)unit;
        u32 len = chunk + 1 == chunks ? last_len : chunk_len;
        u64 first = (u64)chunk * stride;
        /* The ciphertext's blocks and the one with its length; blocks of zeros in front of them
         * fill the first turn, and change nothing. */
        u32 blocks = (len >> 4) + ((len & 15) != 0 ? 1 : 0) + 1;
        u32 turns = (blocks + LANES - 1) >> 5;
        u32 in_front = (turns << 5) - blocks;
        u32x4 y = words(0, 0, 0, 0);
        ROLLED
        for (u32 turn = 0; turn < turns; turn++) {
            u32 block = (turn << 5) + lane - in_front; /* wraps in front */
            u32x4 x = words(0, 0, 0, 0);
            if (block < blocks - 1) {
                x = swap4(load_block(ciphertext, first + block, first << 4, (first << 4) + len));
            } else if (block == blocks - 1) {
                x = words(0, 0, len >> 29, len << 3);
            }
            y = xor4(ghash_step(tables, lane4, y), x);
        }
        partials[(unit << 5) + lane] = ghash_times(y, power);
    }
}

/* The tags (7.1): the sum of a chunk's 32 parts, under its mask. A lane a chunk. */
KERNEL(wattlock_gcm_tags)(GLOBAL const u32x4 *partials, GLOBAL const u32x4 *masks,
                          GLOBAL u32x4 *tags, u32 chunks, u32 shift)
{
    for (u64 chunk = lane_number(shift); chunk < chunks; chunk += GLOBAL_SIZE) {
        u32x4 sum = words(0, 0, 0, 0);
        for (u32 lane = 0; lane < LANES; lane++) {
            sum = xor4(sum, partials[(chunk << 5) + lane]);
        }
        tags[chunk] = xor4(swap4(sum), masks[chunk]);
    }
}
