/* Sums of what a piece was and of what became of it, with which the host finds faults of copies, and a
 * comparison of two results that other groups computed.
 *
 * A sum has two parts. `plain` adds all 64-bit words: any single wrong byte changes it. `hash` adds
 * products of halves, after each word was added to a number that follows from the block's place
 * and from the salt: it changes with the order of blocks, and a fault that `plain` misses escapes it
 * with a probability of about 2^-32. The salt is new for each piece, so that sums of an earlier
 * piece are never taken for those of this one. `src/check.rs` is the same for the CPU. */

/* Lanes of a group, at most. */
#define CHECK_LANES 256u
/* Hash and plain sum of the input, of the first result, and the blocks of both results that are
 * equal. */
#define CHECK_SUMS 5u

FN u64 check_hash(u32x4 block, u32 place, u64 salt_low, u64 salt_high, u64 step_low, u64 step_high)
{
    u32 x = block.x + ((place * (u32)step_low) ^ (u32)salt_low);
    u32 y = block.y + ((place * (u32)(step_low >> 32)) ^ (u32)(salt_low >> 32));
    u32 z = block.z + ((place * (u32)step_high) ^ (u32)salt_high);
    u32 w = block.w + ((place * (u32)(step_high >> 32)) ^ (u32)(salt_high >> 32));
    return (u64)x * (u64)y + (u64)z * (u64)w;
}

FN u64 check_plain(u32x4 block)
{
    return ((u64)block.x | (u64)block.y << 32) + ((u64)block.z | (u64)block.w << 32);
}

FN void check_keep(LOCAL_MEMORY parts, u32 sum, u64 value)
{
    LOCAL_STORE(parts, 2 * sum * LOCAL_SIZE + LOCAL_ID, (u32)value);
    LOCAL_STORE(parts, (2 * sum + 1) * LOCAL_SIZE + LOCAL_ID, (u32)(value >> 32));
}

/* Of the bytes from `start` to `end`. With a `stride`, the last of each `stride` blocks is left out:
 * the room for a tag. Each group writes CHECK_SUMS sums. */
KERNEL(wattlock_check)(GLOBAL const u32x4 *input, GLOBAL const u32x4 *first_result,
                       GLOBAL const u32x4 *second_result, GLOBAL u64 *sums, u64 start, u64 end,
                       u32 stride, u64 salt_low, u64 salt_high, u64 step_low, u64 step_high)
{
    USE_LOCAL_MEMORY(parts, 2 * CHECK_SUMS * CHECK_LANES);
    const u64 blocks = (end + 15) >> 4;
    u64 input_hash = 0, input_plain = 0, result_hash = 0, result_plain = 0, equal = 0;
    ROLLED
    for (u64 block = lane_number(0); block < blocks; block += GLOBAL_SIZE) {
        u32 place = (u32)block;
        if (stride != 0 && place % stride == stride - 1) {
            continue;
        }
        u32x4 read = load_block(input, block, start, end);
        u32x4 first = load_block(first_result, block, start, end);
        u32x4 second = load_block(second_result, block, start, end);
        u32x4 differs = xor4(first, second);
        input_hash += check_hash(read, place, salt_low, salt_high, step_low, step_high);
        input_plain += check_plain(read);
        result_hash += check_hash(first, place, salt_low, salt_high, step_low, step_high);
        result_plain += check_plain(first);
        equal += (differs.x | differs.y | differs.z | differs.w) == 0 ? 1 : 0;
    }
    check_keep(parts, 0, input_hash);
    check_keep(parts, 1, input_plain);
    check_keep(parts, 2, result_hash);
    check_keep(parts, 3, result_plain);
    check_keep(parts, 4, equal);
    BARRIER();
    const u32 sum = LOCAL_ID;
    if (sum < CHECK_SUMS) {
        u64 all = 0;
        ROLLED
        for (u32 lane = 0; lane < LOCAL_SIZE; lane++) {
            u64 low = LOCAL_LOAD(parts, 4 * (2 * sum * LOCAL_SIZE + lane), 0);
            u64 high = LOCAL_LOAD(parts, 4 * ((2 * sum + 1) * LOCAL_SIZE + lane), 0);
            all += low | high << 32;
        }
        sums[GROUP_ID * CHECK_SUMS + sum] = all;
    }
}
