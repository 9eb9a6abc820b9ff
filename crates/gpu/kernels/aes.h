/* AES (FIPS 197) by look-up in tables, and its modes CTR, ECB and CBC. Included once for each
 * kind of tables: V(name) and LOOK(n, word) are that kind's.
 *
 * Columns are little-endian words, so that byte 0 is row 0. Round keys stand at the end of an
 * array for 14 rounds: the last rounds have the same place for every key size, and only the
 * first, at most four, are behind a branch, which all lanes take alike. */

#define KEY(i) words(round_keys[4 * (i)], round_keys[4 * (i) + 1], round_keys[4 * (i) + 2], \
                     round_keys[4 * (i) + 3])

/* What every function of the rounds is given. */
#define CIPHER CONSTANT_POINTER round_keys, u32 rounds, LOCAL_MEMORY tables, u32 lane4
#define GIVEN round_keys, rounds, tables, lane4
#define ROUND CONSTANT_POINTER round_keys, LOCAL_MEMORY tables, u32 lane4
#define IN_ROUND round_keys, tables, lane4

FN u32x4 V(encrypt_round)(ROUND, u32x4 s, u32 i)
{
    return words(LOOK(0, s.x) ^ LOOK(1, s.y) ^ LOOK(2, s.z) ^ LOOK(3, s.w) ^ round_keys[4 * i],
                 LOOK(0, s.y) ^ LOOK(1, s.z) ^ LOOK(2, s.w) ^ LOOK(3, s.x) ^ round_keys[4 * i + 1],
                 LOOK(0, s.z) ^ LOOK(1, s.w) ^ LOOK(2, s.x) ^ LOOK(3, s.y) ^ round_keys[4 * i + 2],
                 LOOK(0, s.w) ^ LOOK(1, s.x) ^ LOOK(2, s.y) ^ LOOK(3, s.z) ^ round_keys[4 * i + 3]);
}

/* Rounds 3 and on, which are the same for all that comes before them. */
FN u32x4 V(encrypt_from_3)(CIPHER, u32x4 s)
{
    if (rounds >= 14) {
        s = V(encrypt_round)(IN_ROUND, s, 3);
        s = V(encrypt_round)(IN_ROUND, s, 4);
    }
    if (rounds >= 12) {
        s = V(encrypt_round)(IN_ROUND, s, 5);
        s = V(encrypt_round)(IN_ROUND, s, 6);
    }
    s = V(encrypt_round)(IN_ROUND, s, 7);
    s = V(encrypt_round)(IN_ROUND, s, 8);
    s = V(encrypt_round)(IN_ROUND, s, 9);
    s = V(encrypt_round)(IN_ROUND, s, 10);
    s = V(encrypt_round)(IN_ROUND, s, 11);
    s = V(encrypt_round)(IN_ROUND, s, 12);
    s = V(encrypt_round)(IN_ROUND, s, 13);
    return xor4(words(V(substitute)(tables, lane4, s.x, s.y, s.z, s.w),
                      V(substitute)(tables, lane4, s.y, s.z, s.w, s.x),
                      V(substitute)(tables, lane4, s.z, s.w, s.x, s.y),
                      V(substitute)(tables, lane4, s.w, s.x, s.y, s.z)),
                KEY(14));
}

FN u32x4 V(encrypt)(CIPHER, u32x4 s)
{
    u32 first = 14 - rounds;
    s = xor4(s, KEY(first));
    s = V(encrypt_round)(IN_ROUND, s, first + 1);
    s = V(encrypt_round)(IN_ROUND, s, first + 2);
    return V(encrypt_from_3)(GIVEN, s);
}

FN u32x4 V(decrypt_round)(ROUND, u32x4 s, u32 i)
{
    return words(LOOK(0, s.x) ^ LOOK(1, s.w) ^ LOOK(2, s.z) ^ LOOK(3, s.y) ^ round_keys[4 * i],
                 LOOK(0, s.y) ^ LOOK(1, s.x) ^ LOOK(2, s.w) ^ LOOK(3, s.z) ^ round_keys[4 * i + 1],
                 LOOK(0, s.z) ^ LOOK(1, s.y) ^ LOOK(2, s.x) ^ LOOK(3, s.w) ^ round_keys[4 * i + 2],
                 LOOK(0, s.w) ^ LOOK(1, s.z) ^ LOOK(2, s.y) ^ LOOK(3, s.x) ^ round_keys[4 * i + 3]);
}

/* The inverse S-box stands in no table of words, but in one of its own: 8 KiB, four entries to a
 * word, with a copy for each lane. */
FN u32 V(inverse_s_box)(LOCAL_MEMORY tables, u32 lane4, u32 index)
{
    u32 four = LOCAL_LOAD(tables, ((index >> 2) << 7) | lane4, 4 * TABLE_WORDS);
    return (four >> (8 * (index & 3))) & 0xffu;
}

FN u32 V(inverse_substitute)(LOCAL_MEMORY tables, u32 lane4, u32 a, u32 b, u32 c, u32 d)
{
    return V(inverse_s_box)(tables, lane4, BYTE(a, 0))
         | V(inverse_s_box)(tables, lane4, BYTE(b, 1)) << 8
         | V(inverse_s_box)(tables, lane4, BYTE(c, 2)) << 16
         | V(inverse_s_box)(tables, lane4, BYTE(d, 3)) << 24;
}

/* The equivalent inverse cipher, 5.3.5, with its own round keys. */
FN u32x4 V(decrypt)(CIPHER, u32x4 s)
{
    u32 first = 14 - rounds;
    s = xor4(s, KEY(first));
    if (rounds >= 14) {
        s = V(decrypt_round)(IN_ROUND, s, 1);
        s = V(decrypt_round)(IN_ROUND, s, 2);
    }
    if (rounds >= 12) {
        s = V(decrypt_round)(IN_ROUND, s, 3);
        s = V(decrypt_round)(IN_ROUND, s, 4);
    }
    s = V(decrypt_round)(IN_ROUND, s, 5);
    s = V(decrypt_round)(IN_ROUND, s, 6);
    s = V(decrypt_round)(IN_ROUND, s, 7);
    s = V(decrypt_round)(IN_ROUND, s, 8);
    s = V(decrypt_round)(IN_ROUND, s, 9);
    s = V(decrypt_round)(IN_ROUND, s, 10);
    s = V(decrypt_round)(IN_ROUND, s, 11);
    s = V(decrypt_round)(IN_ROUND, s, 12);
    s = V(decrypt_round)(IN_ROUND, s, 13);
    return xor4(words(V(inverse_substitute)(tables, lane4, s.x, s.w, s.z, s.y),
                      V(inverse_substitute)(tables, lane4, s.y, s.x, s.w, s.z),
                      V(inverse_substitute)(tables, lane4, s.z, s.y, s.x, s.w),
                      V(inverse_substitute)(tables, lane4, s.w, s.z, s.y, s.x)),
                KEY(14));
}

/* The group fills its tables together; a barrier has to follow. */
FN void V(fill_encrypt_tables)(LOCAL_MEMORY tables)
{
    for (u32 i = LOCAL_ID; i < 256 * LANES; i += LOCAL_SIZE) {
        u32 s = S_BOX[i >> 5];
        u32 twice = ((s << 1) ^ (s & 0x80u ? 0x1bu : 0)) & 0xffu;
        V(fill_entry)(tables, i >> 5, i & 31, twice | s << 8 | s << 16 | (s ^ twice) << 24);
    }
}

FN void V(fill_decrypt_tables)(LOCAL_MEMORY tables)
{
    for (u32 i = LOCAL_ID; i < 256 * LANES; i += LOCAL_SIZE) {
        u32 s1 = INVERSE_S_BOX[i >> 5];
        u32 s2 = ((s1 << 1) ^ (s1 & 0x80u ? 0x1bu : 0)) & 0xffu;
        u32 s4 = ((s2 << 1) ^ (s2 & 0x80u ? 0x1bu : 0)) & 0xffu;
        u32 s8 = ((s4 << 1) ^ (s4 & 0x80u ? 0x1bu : 0)) & 0xffu;
        V(fill_entry)(tables, i >> 5, i & 31,
                      (s8 ^ s4 ^ s2) | (s8 ^ s1) << 8 | (s8 ^ s4 ^ s1) << 16 | (s8 ^ s2 ^ s1) << 24);
    }
    for (u32 i = LOCAL_ID; i < 64 * LANES; i += LOCAL_SIZE) {
        u32 entry = (i >> 5) << 2;
        u32 four = (u32)INVERSE_S_BOX[entry] | (u32)INVERSE_S_BOX[entry + 1] << 8
                 | (u32)INVERSE_S_BOX[entry + 2] << 16 | (u32)INVERSE_S_BOX[entry + 3] << 24;
        LOCAL_STORE(tables, TABLE_WORDS + i, four);
    }
}

/* What 256 counter blocks have in common that differ in their last byte only, two rounds deep. */
#define CACHED V(struct_cached)
struct CACHED {
    u32 whitening; /* XORed onto the last byte: the round key's. */
    u32 column_0;  /* Column 0 after round 1, but for that byte. */
    u32x4 columns; /* All columns after round 2, but for column 0 after round 1. */
};

FN struct CACHED V(cache)(CIPHER, u32x4 counter)
{
    u32 first = 14 - rounds;
    u32x4 s = xor4(counter, KEY(first));
    u32x4 k1 = KEY(first + 1);
    u32x4 k2 = KEY(first + 2);
    struct CACHED c;
    c.whitening = s.w;
    c.column_0 = LOOK(0, s.x) ^ LOOK(1, s.y) ^ LOOK(2, s.z) ^ k1.x;
    u32 y = LOOK(0, s.y) ^ LOOK(1, s.z) ^ LOOK(2, s.w) ^ LOOK(3, s.x) ^ k1.y;
    u32 z = LOOK(0, s.z) ^ LOOK(1, s.w) ^ LOOK(2, s.x) ^ LOOK(3, s.y) ^ k1.z;
    u32 w = LOOK(0, s.w) ^ LOOK(1, s.x) ^ LOOK(2, s.y) ^ LOOK(3, s.z) ^ k1.w;
    c.columns = xor4(words(LOOK(1, y) ^ LOOK(2, z) ^ LOOK(3, w),
                           LOOK(0, y) ^ LOOK(1, z) ^ LOOK(2, w),
                           LOOK(0, z) ^ LOOK(1, w) ^ LOOK(3, y),
                           LOOK(0, w) ^ LOOK(2, y) ^ LOOK(3, z)),
                     k2);
    return c;
}

/* The key stream's block whose counter ends in the byte `last`. */
FN u32x4 V(encrypt_cached)(CIPHER, const struct CACHED c, u32 last)
{
    u32 varying = c.whitening ^ (last << 24);
    u32 x = c.column_0 ^ LOOK(3, varying);
    u32x4 s = xor4(c.columns, words(LOOK(0, x), LOOK(3, x), LOOK(2, x), LOOK(1, x)));
    return V(encrypt_from_3)(GIVEN, s);
}

FN void V(xor_block)(GLOBAL const u32x4 *in, GLOBAL u32x4 *out, u64 block, u32x4 keystream,
                     u64 start, u64 end)
{
    store_block(out, block, xor4(load_block(in, block, start, end), keystream), start, end);
}

FN u32x4 V(counter_block)(u64 high, u64 low)
{
    return words(byte_swap((u32)(high >> 32)), byte_swap((u32)high),
                 byte_swap((u32)(low >> 32)), byte_swap((u32)low));
}

/* CTR. 32 lanes take 256 counters at a time that differ in their last byte. */
KERNEL(V(wattlock_ctr))(ROUND_KEYS u32 rounds, GLOBAL const u32x4 *in, GLOBAL u32x4 *out,
                        u64 counter_high, u64 counter_low, u64 start, u64 end, u32 shift)
{
    USE_ROUND_KEYS;
    USE_LOCAL_MEMORY(tables, TABLE_WORDS);
    V(fill_encrypt_tables)(tables);
    BARRIER();
    const u32 lane = LOCAL_ID & 31;
    const u32 lane4 = lane * 4;
    const u32 ahead = (u32)counter_low & 255u;
    const u64 blocks = (end + 15) >> 4;
    const u64 units = (blocks + ahead + 255) >> 8;
    counter_low -= ahead;
    ROLLED
    for (u64 unit = lane_number(shift) >> 5; unit < units; unit += GLOBAL_SIZE >> 5) {
        u64 low = counter_low + (unit << 8);
        u64 high = counter_high + (low < counter_low ? 1 : 0);
        const struct CACHED cached = V(cache)(GIVEN, V(counter_block)(high, low));
        ROLLED
        for (u32 last = lane; last < 256; last += LANES) {
            /* Below the first block, the difference wraps and is no block either. */
            u64 block = (unit << 8) + last - ahead;
            if (block < blocks) {
                u32x4 keystream = V(encrypt_cached)(GIVEN, cached, last);
                V(xor_block)(in, out, block, keystream, start, end);
            }
        }
    }
}

/* CTR as the study of extended block sizes has it: each lane takes `lane_blocks` blocks that lie
 * one behind the other, and nothing is cached. */
KERNEL(V(wattlock_ctr_extended))(ROUND_KEYS u32 rounds, GLOBAL const u32x4 *in,
                                 GLOBAL u32x4 *out, u64 counter_high, u64 counter_low,
                                 u64 start, u64 end, u32 lane_blocks, u32 shift)
{
    USE_ROUND_KEYS;
    USE_LOCAL_MEMORY(tables, TABLE_WORDS);
    V(fill_encrypt_tables)(tables);
    BARRIER();
    const u32 lane4 = (LOCAL_ID & 31) * 4;
    const u64 blocks = (end + 15) >> 4;
    ROLLED
    for (u64 first = lane_number(shift) * lane_blocks; first < blocks; first += GLOBAL_SIZE * lane_blocks) {
        ROLLED
        for (u32 i = 0; i < lane_blocks; i++) {
            u64 block = first + i;
            if (block < blocks) {
                u64 low = counter_low + block;
                u64 high = counter_high + (low < counter_low ? 1 : 0);
                u32x4 keystream = V(encrypt)(GIVEN, V(counter_block)(high, low));
                V(xor_block)(in, out, block, keystream, start, end);
            }
        }
    }
}

/* ECB, enciphering. */
KERNEL(V(wattlock_ecb_encrypt))(ROUND_KEYS u32 rounds, GLOBAL const u32x4 *in, GLOBAL u32x4 *out,
                                u64 blocks, u32 shift)
{
    USE_ROUND_KEYS;
    USE_LOCAL_MEMORY(tables, TABLE_WORDS);
    V(fill_encrypt_tables)(tables);
    BARRIER();
    const u32 lane4 = (LOCAL_ID & 31) * 4;
    ROLLED
    for (u64 block = lane_number(shift); block < blocks; block += GLOBAL_SIZE) {
        out[block] = V(encrypt)(GIVEN, in[block]);
    }
}

/* CBC, enciphering, of messages of `message_blocks` blocks each (the last may be shorter) with an IV
 * each. A message is a chain, and a lane's own: few messages keep few lanes busy. */
KERNEL(V(wattlock_cbc_encrypt))(ROUND_KEYS u32 rounds, GLOBAL const u32x4 *in, GLOBAL u32x4 *out,
                                GLOBAL const u32x4 *ivs, u64 blocks, u32 message_blocks,
                                u32 shift)
{
    USE_ROUND_KEYS;
    USE_LOCAL_MEMORY(tables, TABLE_WORDS);
    V(fill_encrypt_tables)(tables);
    BARRIER();
    const u32 lane4 = (LOCAL_ID & 31) * 4;
    ROLLED
    for (u64 message = lane_number(shift); message * message_blocks < blocks; message += GLOBAL_SIZE) {
        u64 block = message * message_blocks;
        u64 end = block + message_blocks < blocks ? block + message_blocks : blocks;
        u32x4 before = ivs[message];
        ROLLED
        for (; block < end; block++) {
            before = V(encrypt)(GIVEN, xor4(in[block], before));
            out[block] = before;
        }
    }
}

/* ECB, deciphering, with the round keys of the equivalent inverse cipher. */
KERNEL(V(wattlock_ecb_decrypt))(ROUND_KEYS u32 rounds, GLOBAL const u32x4 *in, GLOBAL u32x4 *out,
                                u64 blocks, u32 shift)
{
    USE_ROUND_KEYS;
    USE_LOCAL_MEMORY(tables, TABLE_WORDS + 64 * LANES);
    V(fill_decrypt_tables)(tables);
    BARRIER();
    const u32 lane4 = (LOCAL_ID & 31) * 4;
    ROLLED
    for (u64 block = lane_number(shift); block < blocks; block += GLOBAL_SIZE) {
        out[block] = V(decrypt)(GIVEN, in[block]);
    }
}

/* CBC, deciphering, of messages of `message_blocks` blocks each (the last may be shorter) with an
 * IV each. Not in place: a block needs the ciphertext before it. */
KERNEL(V(wattlock_cbc_decrypt))(ROUND_KEYS u32 rounds, GLOBAL const u32x4 *RESTRICT in,
                                GLOBAL u32x4 *RESTRICT out, GLOBAL const u32x4 *RESTRICT ivs,
                                u64 blocks, u32 message_blocks,
                                u32 shift)
{
    USE_ROUND_KEYS;
    USE_LOCAL_MEMORY(tables, TABLE_WORDS + 64 * LANES);
    V(fill_decrypt_tables)(tables);
    BARRIER();
    const u32 lane4 = (LOCAL_ID & 31) * 4;
    ROLLED
    for (u64 block = lane_number(shift); block < blocks; block += GLOBAL_SIZE) {
        u32 message = (u32)block / message_blocks;
        u32 within = (u32)block - message * message_blocks;
        u32x4 before = within == 0 ? ivs[message] : in[block - 1];
        out[block] = xor4(V(decrypt)(GIVEN, in[block]), before);
    }
}

/* The CTR part of AES-GCM (SP 800-38D, 7.1), of chunks with a nonce each. A chunk stands in
 * `chunk_len / 16 + 1` blocks, of which the last is room for its tag; the last chunk has
 * `last_len` bytes. The key stream's first block, with which the tag is masked, goes to `masks`. */
KERNEL(V(wattlock_gcm_ctr))(ROUND_KEYS u32 rounds, GLOBAL const u32x4 *in, GLOBAL u32x4 *out,
                            GLOBAL const u32x4 *nonces, GLOBAL u32x4 *masks, u32 chunks,
                            u32 chunk_len, u32 last_len, u32 shift)
{
    USE_ROUND_KEYS;
    USE_LOCAL_MEMORY(tables, TABLE_WORDS);
    V(fill_encrypt_tables)(tables);
    BARRIER();
    const u32 lane = LOCAL_ID & 31;
    const u32 lane4 = lane * 4;
    const u32 stride = (chunk_len >> 4) + 1;
    /* The counter of data block b is b + 2. */
    const u32 chunk_units = ((stride + 1) >> 8) + 1;
    const u64 units = (u64)chunks * chunk_units;
    ROLLED
    for (u64 unit = lane_number(shift) >> 5; unit < units; unit += GLOBAL_SIZE >> 5) {
        u32 chunk = (u32)unit / chunk_units;
        u32 within = (u32)unit - chunk * chunk_units;
        u32 len = chunk + 1 == chunks ? last_len : chunk_len;
        u64 first = (u64)chunk * stride;
        u32x4 counter = nonces[chunk];
        counter.w = byte_swap(within << 8);
        const struct CACHED cached = V(cache)(GIVEN, counter);
        ROLLED
        for (u32 last = lane; last < 256; last += LANES) {
            u32 count = (within << 8) + last;
            if (count >= 1 && (count == 1 || (count - 2) << 4 < len)) {
                u32x4 keystream = V(encrypt_cached)(GIVEN, cached, last);
                if (count == 1) {
                    masks[chunk] = keystream;
                } else {
                    u64 block = first + count - 2;
                    V(xor_block)(in, out, block, keystream, first << 4, (first << 4) + len);
                }
            }
        }
    }
}

#undef CACHED
#undef KEY
#undef CIPHER
#undef GIVEN
#undef ROUND
#undef IN_ROUND
#undef TABLE_WORDS
