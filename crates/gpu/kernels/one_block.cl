/* AES as the SEFPS study has it on its GPU (Algorithms 3 and 4): each thread has one block, in place,
 * and looks up four tables in global memory, which the host copies there for each file. Threads
 * behind the last block have nothing to do. For comparison only: `aes.h` is what is used.
 *
 * Words are little-endian. `keys` begins with the first round key. */

#define BYTE(word, n) (((word) >> (8 * (n))) & 0xffu)
#define LOOK(a, b, c, d) \
    (tables[BYTE(a, 0)] ^ tables[256 + BYTE(b, 1)] ^ tables[512 + BYTE(c, 2)] ^ \
     tables[768 + BYTE(d, 3)])

/* The last round of enciphering. The S-box is the second byte of the first table. */
#define SUBSTITUTE(x) BYTE(tables[x], 1)
#define LAST(a, b, c, d) \
    (SUBSTITUTE(BYTE(a, 0)) | SUBSTITUTE(BYTE(b, 1)) << 8 | SUBSTITUTE(BYTE(c, 2)) << 16 | \
     SUBSTITUTE(BYTE(d, 3)) << 24)

/* The last round of deciphering, which takes a table of its own. */
#define INVERSE_LAST(a, b, c, d) \
    ((uint)box[BYTE(a, 0)] | (uint)box[BYTE(b, 1)] << 8 | (uint)box[BYTE(c, 2)] << 16 | \
     (uint)box[BYTE(d, 3)] << 24)

__kernel void one_block_encrypt(__global uint4 *data, __global const uint *keys,
                                __global const uint *tables, ulong blocks, uint rounds)
{
    const ulong block = get_global_id(0);
    if (block >= blocks) {
        return;
    }
    uint4 s = data[block] ^ (uint4)(keys[0], keys[1], keys[2], keys[3]);
    for (uint round = 1; round < rounds; round++) {
        __global const uint *key = keys + 4 * round;
        s = (uint4)(LOOK(s.x, s.y, s.z, s.w) ^ key[0], LOOK(s.y, s.z, s.w, s.x) ^ key[1],
                    LOOK(s.z, s.w, s.x, s.y) ^ key[2], LOOK(s.w, s.x, s.y, s.z) ^ key[3]);
    }
    __global const uint *key = keys + 4 * rounds;
    data[block] = (uint4)(LAST(s.x, s.y, s.z, s.w) ^ key[0], LAST(s.y, s.z, s.w, s.x) ^ key[1],
                          LAST(s.z, s.w, s.x, s.y) ^ key[2], LAST(s.w, s.x, s.y, s.z) ^ key[3]);
}

/* With the round keys of the equivalent inverse cipher, first used first. */
__kernel void one_block_decrypt(__global uint4 *data, __global const uint *keys,
                                __global const uint *tables, __global const uchar *box,
                                ulong blocks, uint rounds)
{
    const ulong block = get_global_id(0);
    if (block >= blocks) {
        return;
    }
    uint4 s = data[block] ^ (uint4)(keys[0], keys[1], keys[2], keys[3]);
    for (uint round = 1; round < rounds; round++) {
        __global const uint *key = keys + 4 * round;
        s = (uint4)(LOOK(s.x, s.w, s.z, s.y) ^ key[0], LOOK(s.y, s.x, s.w, s.z) ^ key[1],
                    LOOK(s.z, s.y, s.x, s.w) ^ key[2], LOOK(s.w, s.z, s.y, s.x) ^ key[3]);
    }
    __global const uint *key = keys + 4 * rounds;
    data[block] =
        (uint4)(INVERSE_LAST(s.x, s.w, s.z, s.y) ^ key[0], INVERSE_LAST(s.y, s.x, s.w, s.z) ^ key[1],
                INVERSE_LAST(s.z, s.y, s.x, s.w) ^ key[2], INVERSE_LAST(s.w, s.z, s.y, s.x) ^ key[3]);
}
