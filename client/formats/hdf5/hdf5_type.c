/* HDF5 types and dtypes.
 *
 * Served are the plain integers and IEEE floats in either byte order, with all bits in use; the
 * enum of FALSE = 0 and TRUE = 1 over int8 that h5py makes of NumPy's bool; other enums as the
 * integers that they name; bit fields of 8 bits, which are PyTables' bools, and wider ones as
 * unsigned integers; times of 32 bits as integers, and those of 64, once they are converted, as
 * floats. Integers, bit fields and floats of other widths, as the n-bit filter packs them, are
 * converted by HDF5 to the narrowest dtype that has all their values. Everything else is named in
 * the refusal.
 *
 * Called by hdf5.c and hdf5_output.c.
 */
#include "client/formats/hdf5/hdf5_type.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "proto/util.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

struct known_type {
    hid_t type;
    enum dtype dtype;
    bool is_big_endian;
};

/* HDF5's names are variables, so the table cannot be static. */
#define N_KNOWN 32
static void known_types(struct known_type ret_known[N_KNOWN])
{
    const struct known_type known[N_KNOWN] = {
        {H5T_STD_I8LE, DTYPE_INT8, false},      {H5T_STD_I8BE, DTYPE_INT8, true},
        {H5T_STD_I16LE, DTYPE_INT16, false},    {H5T_STD_I16BE, DTYPE_INT16, true},
        {H5T_STD_I32LE, DTYPE_INT32, false},    {H5T_STD_I32BE, DTYPE_INT32, true},
        {H5T_STD_I64LE, DTYPE_INT64, false},    {H5T_STD_I64BE, DTYPE_INT64, true},
        {H5T_STD_U8LE, DTYPE_UINT8, false},     {H5T_STD_U8BE, DTYPE_UINT8, true},
        {H5T_STD_U16LE, DTYPE_UINT16, false},   {H5T_STD_U16BE, DTYPE_UINT16, true},
        {H5T_STD_U32LE, DTYPE_UINT32, false},   {H5T_STD_U32BE, DTYPE_UINT32, true},
        {H5T_STD_U64LE, DTYPE_UINT64, false},   {H5T_STD_U64BE, DTYPE_UINT64, true},
        {H5T_IEEE_F32LE, DTYPE_FLOAT32, false}, {H5T_IEEE_F32BE, DTYPE_FLOAT32, true},
        {H5T_IEEE_F64LE, DTYPE_FLOAT64, false}, {H5T_IEEE_F64BE, DTYPE_FLOAT64, true},
        {H5T_STD_B8LE, DTYPE_BOOL, false},      {H5T_STD_B8BE, DTYPE_BOOL, true},
        {H5T_STD_B16LE, DTYPE_UINT16, false},   {H5T_STD_B16BE, DTYPE_UINT16, true},
        {H5T_STD_B32LE, DTYPE_UINT32, false},   {H5T_STD_B32BE, DTYPE_UINT32, true},
        {H5T_STD_B64LE, DTYPE_UINT64, false},   {H5T_STD_B64BE, DTYPE_UINT64, true},
        {H5T_UNIX_D32LE, DTYPE_INT32, false},   {H5T_UNIX_D32BE, DTYPE_INT32, true},
        {H5T_UNIX_D64LE, DTYPE_FLOAT64, false}, {H5T_UNIX_D64BE, DTYPE_FLOAT64, false},
    };
    memcpy(ret_known, known, sizeof(known));
}

static bool has_member(hid_t type, const char *name, int8_t wanted)
{
    int8_t value = -1;
    return H5Tenum_valueof(type, name, &value) >= 0 && value == wanted;
}

static bool is_bool(hid_t type)
{
    return H5Tget_class(type) == H5T_ENUM && H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 &&
           has_member(type, "FALSE", 0) && has_member(type, "TRUE", 1);
}

/* Of as many bytes, or of the next power of two. */
static bool integer_dtype(size_t n_bytes, bool is_signed, enum dtype *ret_dtype)
{
    static const enum dtype dtypes[][2] = {
        {DTYPE_UINT8, DTYPE_INT8},
        {DTYPE_UINT16, DTYPE_INT16},
        {DTYPE_UINT32, DTYPE_INT32},
        {DTYPE_UINT64, DTYPE_INT64},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(dtypes); i++) {
        if (n_bytes > (size_t)1 << i)
            continue;
        *ret_dtype = dtypes[i][is_signed];
        return true;
    }
    return false;
}

/* Whether a float with so many bits and these exponents of 2 has all values of the type. */
static bool float_has(hid_t type, size_t n_mantissa, int64_t least, int64_t most)
{
    size_t sign, exponent_at, n_exponent, mantissa_at, n;
    int64_t bias = (int64_t)H5Tget_ebias(type);
    return H5Tget_norm(type) == H5T_NORM_IMPLIED &&
           H5Tget_fields(type, &sign, &exponent_at, &n_exponent, &mantissa_at, &n) >= 0 &&
           n <= n_mantissa && n_exponent < 16 && bias >= 0 && bias < 1 << 16 &&
           (INT64_C(1) << n_exponent) - 2 - bias <= most && 1 - bias - (int64_t)n >= least;
}

/* What a type that is in no table is converted to. False: it is not. */
static bool converted_dtype(hid_t type, enum dtype *ret_dtype)
{
    H5T_order_t order = H5Tget_order(type);
    if (order != H5T_ORDER_LE && order != H5T_ORDER_BE)
        return false;
    switch (H5Tget_class(type)) {
    case H5T_INTEGER:
        return integer_dtype(H5Tget_size(type), H5Tget_sign(type) == H5T_SGN_2, ret_dtype);
    case H5T_BITFIELD: return integer_dtype(H5Tget_size(type), false, ret_dtype);
    case H5T_FLOAT:
        *ret_dtype = float_has(type, 23, -149, 127) ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
        return *ret_dtype == DTYPE_FLOAT32 || float_has(type, 52, -1074, 1023);
    default: return false;
    }
}

static bool plain_dtype(hid_t type, enum dtype *ret_dtype, bool *ret_is_swapped)
{
    struct known_type known[N_KNOWN];
    known_types(known);
    *ret_is_swapped = false;
    if (is_bool(type)) {
        *ret_dtype = DTYPE_BOOL;
        return true;
    }
    if (H5Tget_class(type) == H5T_ENUM) {
        _cleanup_hid_ hid_t base = H5Tget_super(type);
        return base > 0 && H5Tget_class(base) != H5T_ENUM &&
               plain_dtype(base, ret_dtype, ret_is_swapped);
    }
    for (size_t i = 0; i < N_KNOWN; i++) {
        if (H5Tequal(type, known[i].type) > 0) {
            *ret_dtype = known[i].dtype;
            *ret_is_swapped = known[i].is_big_endian && dtype_size(known[i].dtype) > 1;
            return true;
        }
    }
    return false;
}

/* The integers that an enum names. */
static hid_t base_type(hid_t type)
{
    return H5Tget_class(type) == H5T_ENUM ? H5Tget_super(type) : H5Tcopy(type);
}

bool hdf5_type_to_dtype(hid_t type, enum dtype *ret_dtype, bool *ret_is_swapped)
{
    if (plain_dtype(type, ret_dtype, ret_is_swapped))
        return true;
    _cleanup_hid_ hid_t base = base_type(type);
    return base > 0 && converted_dtype(base, ret_dtype);
}

static bool is_time64(hid_t type)
{
    return H5Tget_class(type) == H5T_TIME && H5Tget_size(type) == sizeof(int64_t);
}

bool hdf5_type_is_converted(hid_t type)
{
    enum dtype dtype;
    bool is_swapped;
    return is_time64(type) || !plain_dtype(type, &dtype, &is_swapped);
}

/* An integer keeps its bits, the lowest byte first: between types of one size and different
 * orders HDF5 only turns the bytes, and leaves out the sign above them. */
hid_t hdf5_type_as_read(hid_t type)
{
    enum dtype dtype;
    bool is_swapped;
    if (plain_dtype(type, &dtype, &is_swapped))
        return H5Tcopy(type);
    hid_t base = base_type(type);
    bool is_known = base > 0 && converted_dtype(base, &dtype);
    if (is_known && !dtype_is_float(dtype) && H5Tset_size(base, dtype_size(dtype)) >= 0 &&
        H5Tset_order(base, H5T_ORDER_LE) >= 0)
        return base;
    hdf5_close(&base);
    return is_known && dtype_is_float(dtype) ? hdf5_type_make(dtype) : H5I_INVALID_HID;
}

static void convert_times(hid_t type, char *at, size_t n_bytes)
{
    bool is_big_endian = H5Tget_order(type) == H5T_ORDER_BE;
    for (size_t i = 0; i + sizeof(uint64_t) <= n_bytes; i += sizeof(uint64_t)) {
        uint64_t bits;
        memcpy(&bits, at + i, sizeof(bits));
        bits = is_big_endian ? be64toh(bits) : le64toh(bits);
        double seconds = 1e-6 * (int32_t)(uint32_t)bits + (double)((int64_t)bits >> 32);
        memcpy(at + i, &seconds, sizeof(seconds));
    }
}

/* To all bits of each element from some in the middle, of which a sign is the highest. */
static void widen_integers(hid_t type, char *at, size_t n_bytes)
{
    size_t item_bytes = H5Tget_size(type);
    unsigned n_bits = (unsigned)H5Tget_precision(type), unused = 64 - n_bits;
    unsigned above = unused - (unsigned)H5Tget_offset(type);
    bool is_signed = H5Tget_class(type) == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
    for (size_t i = 0; i + item_bytes <= n_bytes; i += item_bytes) {
        uint64_t bits = 0;
        memcpy(&bits, at + i, item_bytes);
        bits <<= above;
        bits = is_signed ? (uint64_t)((int64_t)bits >> unused) : bits >> unused;
        memcpy(at + i, &bits, item_bytes);
    }
}

void hdf5_type_convert(hid_t type, void *values, size_t n_bytes)
{
    H5T_class_t class = H5Tget_class(type);
    bool has_all_bits = class == H5T_ENUM || H5Tget_precision(type) == 8 * H5Tget_size(type);
    if (is_time64(type))
        convert_times(type, values, n_bytes);
    else if ((class == H5T_INTEGER || class == H5T_BITFIELD) && !has_all_bits)
        widen_integers(type, values, n_bytes);
}

const char *hdf5_type_describe(hid_t type, char *buffer, size_t n_bytes)
{
    const char *kind = "an unknown type";
    if (H5Tis_variable_str(type) > 0) {
        snprintf(buffer, n_bytes, "a string of varying length");
        return buffer;
    }
    switch (H5Tget_class(type)) {
    case H5T_INTEGER: kind = "an unusual integer"; break;
    case H5T_FLOAT: kind = "an unusual float"; break;
    case H5T_STRING: kind = "a string"; break;
    case H5T_BITFIELD: kind = "an unusual bit field"; break;
    case H5T_OPAQUE: kind = "opaque bytes"; break;
    case H5T_COMPOUND: kind = "a compound"; break;
    case H5T_REFERENCE: kind = "a reference"; break;
    case H5T_ENUM: kind = "an enum of unusual integers"; break;
    case H5T_VLEN: kind = "a list of varying length"; break;
    case H5T_ARRAY: kind = "an array"; break;
    case H5T_TIME: kind = "a time"; break;
    default: break;
    }
    snprintf(buffer, n_bytes, "%s of %zu bytes", kind, H5Tget_size(type));
    return buffer;
}

static hid_t make_bool(void)
{
    hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
    const int8_t no = 0, yes = 1;
    if (type > 0 &&
        (H5Tenum_insert(type, "FALSE", &no) < 0 || H5Tenum_insert(type, "TRUE", &yes) < 0))
        hdf5_close(&type);
    return type;
}

hid_t hdf5_type_make(enum dtype dtype)
{
    struct known_type known[N_KNOWN];
    known_types(known);
    if (dtype == DTYPE_BOOL)
        return make_bool();
    for (size_t i = 0; i < N_KNOWN; i++)
        if (known[i].dtype == dtype && !known[i].is_big_endian)
            return H5Tcopy(known[i].type);
    return H5I_INVALID_HID;
}
