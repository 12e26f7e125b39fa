/* scale-offset of HDF5's own filters: numbers as so many bits above the least one.
 *
 *     bits of a number (4 bytes) | 8 | least number (8 bytes) | 8 bytes | numbers, the highest bit
 * first
 *
 * Integers are least + number; floats, which were rounded to so many decimals (D-scaling),
 * number / 10^decimals + least, in their own dtype as HDF5 computes it. Where the dataset has a
 * fill value, the largest number stands for it. As many bits as the elements have: they are as they
 * were. HDF5's filter does nothing at all where a writer asked for all bits of an integer.
 *
 * values: 0: 0 D-scaling, 2 of integers; 1: decimals, or bits that were asked for; 2: elements of a
 * chunk; 3: 1 of floats; 4: bytes of an element; 5: signed; 6: 1: of the other byte order; 7: there
 * is a fill value, in 8 and on, the lowest byte first.
 */
#include "client/codecs/scratch.h"

#include <math.h>
#include <string.h>

enum { SCALE_TYPE, SCALE, N_ELEMENTS, IS_FLOAT, ITEM_BYTES, IS_SIGNED, IS_BIG, HAS_FILL, FILL };
enum { SCALE_DECIMALS = 0, SCALE_INTEGERS = 2 };

#define HEAD_BYTES 21u

struct packed {
    unsigned n_bits, item_bytes;
    uint64_t n, least, fill, fill_number;
    bool has_fill;
    double tens;
    float tens_f32;
};

/* The next number of a stream of bits; *at counts them. */
static uint64_t next_number(const uint8_t *bytes, uint64_t *at, unsigned n_bits)
{
    uint64_t value = 0;
    for (unsigned left = n_bits; left > 0;) {
        unsigned in_byte = 8 - (unsigned)(*at % 8), n = left < in_byte ? left : in_byte;
        value = value << n | (bytes[*at / 8] >> (in_byte - n) & ((1u << n) - 1));
        *at += n;
        left -= n;
    }
    return value;
}

static uint64_t element(const struct codec_step *step, const struct packed *packed, uint64_t number)
{
    union {
        float f32;
        double f64;
        uint64_t u64;
    } least = {.u64 = packed->least}, value = {.u64 = 0};
    if (packed->has_fill && number == packed->fill_number)
        return packed->fill;
    if (!step->values[IS_FLOAT])
        return number + packed->least;
    if (packed->item_bytes == 4)
        value.f32 = (float)(int32_t)number / packed->tens_f32 + least.f32;
    else
        value.f64 = (double)(int64_t)number / packed->tens + least.f64;
    return value.u64;
}

static void put(uint8_t *to, uint64_t value, unsigned n_bytes, bool is_big)
{
    for (unsigned i = 0; i < n_bytes; i++)
        to[is_big ? n_bytes - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

static void unpack(const struct codec_step *step, const struct packed *packed, const uint8_t *bits,
                   uint8_t *to)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < packed->n; i++)
        put(to + i * packed->item_bytes,
            element(step, packed, next_number(bits, &at, packed->n_bits)), packed->item_bytes,
            step->values[IS_BIG]);
}

static uint64_t read_little(const uint8_t *bytes, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

/* What the values say, which a file may have from anybody. */
static int read_values(const struct codec_step *step, struct packed *ret)
{
    if (step->n_values < FILL || step->values[IS_FLOAT] > 1 || step->values[IS_BIG] > 1)
        return CODEC_FAULT_VALUES;
    unsigned item_bytes = step->values[ITEM_BYTES];
    bool is_float = step->values[IS_FLOAT], has_fill = step->values[HAS_FILL];
    if (step->values[SCALE_TYPE] != (is_float ? SCALE_DECIMALS : SCALE_INTEGERS) ||
        (item_bytes != 1 && item_bytes != 2 && item_bytes != 4 && item_bytes != 8) ||
        (is_float && item_bytes < 4) || (has_fill && step->n_values < FILL + (item_bytes + 3) / 4))
        return CODEC_FAULT_VALUES;
    *ret = (struct packed){.item_bytes = item_bytes, .n = step->values[N_ELEMENTS]};
    ret->has_fill = has_fill;
    for (unsigned i = 0; has_fill && i < item_bytes; i++)
        ret->fill |= (uint64_t)(step->values[FILL + i / 4] >> 8 * (i % 4) & 0xff) << 8 * i;
    ret->tens = pow(10, (int32_t)step->values[SCALE]);
    ret->tens_f32 = powf(10, (float)(int32_t)step->values[SCALE]);
    return 0;
}

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    const uint8_t *bytes = from, *bits = bytes + HEAD_BYTES;
    struct packed packed;
    int r = read_values(step, &packed);
    if (r)
        return r;
    unsigned all_bits = 8 * packed.item_bytes;
    if (!step->values[IS_FLOAT] && step->values[SCALE] == all_bits) {
        if (n_from > room)
            return CODEC_FAULT_LONG;
        memcpy(ret_bytes, from, n_from);
        *ret_n_bytes = n_from;
        return 0;
    }
    if (packed.n > room / packed.item_bytes)
        return CODEC_FAULT_LONG;
    if (n_from < HEAD_BYTES)
        return CODEC_FAULT_SHORT;
    packed.n_bits = (unsigned)read_little(bytes, 4);
    packed.least = read_little(bytes + 5, 8);
    if (packed.n_bits > all_bits || bytes[4] != 8)
        return CODEC_FAULT_CORRUPT;
    if ((packed.n * packed.n_bits + 7) / 8 > n_from - HEAD_BYTES)
        return CODEC_FAULT_SHORT;
    *ret_n_bytes = (size_t)packed.n * packed.item_bytes;
    if (packed.n_bits == all_bits) {
        for (uint64_t i = 0; i < packed.n; i++)
            put((uint8_t *)ret_bytes + i * packed.item_bytes,
                read_little(bits + i * packed.item_bytes, packed.item_bytes), packed.item_bytes,
                step->values[IS_BIG]);
        return 0;
    }
    packed.fill_number = (UINT64_C(1) << packed.n_bits) - 1;
    packed.has_fill &= packed.n_bits > 0;
    unpack(step, &packed, bits, ret_bytes);
    return 0;
}

/* A writer's own limit is the elements and what stands before them. */
static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return n_bytes + HEAD_BYTES + 8;
}

const struct codec codec_scaleoffset = {
    .name = "scaleoffset",
    .hdf5_id = 6,
    .decode = decode,
    .bound = bound,
};
