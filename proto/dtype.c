/* Element types: sizes, names, NumPy's promotion and casting rules.
 *
 * One table gives size, kind, name and typestrs; the rules are computed from size and kind, as
 * NumPy defines them, so that there is no matrix to mistype. The order of the kinds is NumPy's:
 * bool < unsigned < signed < float. Used by the wire (typestrs), the compiler (promotion, casts)
 * and the client's formats.
 *
 * NumPy's other names (`double`, `intc`, `int`, ...) are those of 64-bit Linux.
 */
#include "proto/dtype.h"

#include "proto/util.h"

#include <string.h>

enum kind { KIND_BOOL, KIND_UNSIGNED, KIND_SIGNED, KIND_FLOAT };

static const struct {
    const char *name;
    const char *typestr[2]; /* little-endian, big-endian */
    uint8_t size;
    uint8_t kind;
} infos[DTYPE_COUNT] = {
    [DTYPE_BOOL] = {"bool", {"|b1", "|b1"}, 1, KIND_BOOL},
    [DTYPE_INT8] = {"int8", {"|i1", "|i1"}, 1, KIND_SIGNED},
    [DTYPE_INT16] = {"int16", {"<i2", ">i2"}, 2, KIND_SIGNED},
    [DTYPE_INT32] = {"int32", {"<i4", ">i4"}, 4, KIND_SIGNED},
    [DTYPE_INT64] = {"int64", {"<i8", ">i8"}, 8, KIND_SIGNED},
    [DTYPE_UINT8] = {"uint8", {"|u1", "|u1"}, 1, KIND_UNSIGNED},
    [DTYPE_UINT16] = {"uint16", {"<u2", ">u2"}, 2, KIND_UNSIGNED},
    [DTYPE_UINT32] = {"uint32", {"<u4", ">u4"}, 4, KIND_UNSIGNED},
    [DTYPE_UINT64] = {"uint64", {"<u8", ">u8"}, 8, KIND_UNSIGNED},
    [DTYPE_FLOAT32] = {"float32", {"<f4", ">f4"}, 4, KIND_FLOAT},
    [DTYPE_FLOAT64] = {"float64", {"<f8", ">f8"}, 8, KIND_FLOAT},
};

static const struct {
    const char *name;
    enum dtype dtype;
} aliases[] = {
    {"bool_", DTYPE_BOOL},     {"byte", DTYPE_INT8},        {"short", DTYPE_INT16},
    {"intc", DTYPE_INT32},     {"int_", DTYPE_INT64},       {"int", DTYPE_INT64},
    {"intp", DTYPE_INT64},     {"long", DTYPE_INT64},       {"longlong", DTYPE_INT64},
    {"ubyte", DTYPE_UINT8},    {"ushort", DTYPE_UINT16},    {"uintc", DTYPE_UINT32},
    {"uint", DTYPE_UINT64},    {"uintp", DTYPE_UINT64},     {"ulong", DTYPE_UINT64},
    {"single", DTYPE_FLOAT32}, {"ulonglong", DTYPE_UINT64}, {"double", DTYPE_FLOAT64},
    {"float", DTYPE_FLOAT64},
};

size_t dtype_size(enum dtype dtype)
{
    return infos[dtype].size;
}

const char *dtype_name(enum dtype dtype)
{
    return infos[dtype].name;
}

bool dtype_is_float(enum dtype dtype)
{
    return infos[dtype].kind == KIND_FLOAT;
}

bool dtype_is_signed(enum dtype dtype)
{
    return infos[dtype].kind == KIND_SIGNED;
}

bool dtype_is_unsigned(enum dtype dtype)
{
    return infos[dtype].kind == KIND_UNSIGNED;
}

bool dtype_is_integer(enum dtype dtype)
{
    return dtype_is_signed(dtype) || dtype_is_unsigned(dtype);
}

/* "f8": two characters, as in all typestrs after the byte order. */
static bool from_kind_and_size(const char *text, enum dtype *ret_dtype)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (memcmp(infos[i].typestr[0] + 1, text, 2) == 0) {
            *ret_dtype = (enum dtype)i;
            return true;
        }
    }
    return false;
}

static bool typestr_parse(const char *text, size_t n_chars, enum dtype *ret_dtype,
                          bool *ret_is_swapped)
{
    char order = '=';
    if (n_chars == 3) {
        order = *text++;
        n_chars--;
    }
    enum dtype dtype;
    if (n_chars != 2 || !from_kind_and_size(text, &dtype))
        return false;
    bool is_one_byte = dtype_size(dtype) == 1;
    if (order != '<' && order != '>' && order != '=' && !(order == '|' && is_one_byte))
        return false;
    *ret_dtype = dtype;
    *ret_is_swapped = order == '>' && !is_one_byte;
    return true;
}

int dtype_from_typestr(const char *text, size_t n_chars, enum dtype *ret_dtype,
                       bool *ret_is_swapped, struct gad_error *error)
{
    if (typestr_parse(text, n_chars, ret_dtype, ret_is_swapped))
        return 0;
    int shown = (int)min_u64(n_chars, 48);
    int r = error_set(error, GAD_BAD_DTYPE, NULL, "dtype '%.*s' is not supported", shown, text);
    error_expected(error, "b1, i1, i2, i4, i8, u1, u2, u4, u8, f4 or f8 with a byte order");
    error_found(error, "%.*s", shown, text);
    return r;
}

const char *dtype_typestr(enum dtype dtype, bool is_swapped)
{
    return infos[dtype].typestr[is_swapped];
}

static bool is_name(const char *name, const char *text, size_t n_chars)
{
    return strlen(name) == n_chars && memcmp(name, text, n_chars) == 0;
}

bool dtype_from_name(const char *name, size_t n_chars, enum dtype *ret_dtype)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (is_name(infos[i].name, name, n_chars)) {
            *ret_dtype = (enum dtype)i;
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LENGTH(aliases); i++) {
        if (is_name(aliases[i].name, name, n_chars)) {
            *ret_dtype = aliases[i].dtype;
            return true;
        }
    }
    return n_chars == 2 && from_kind_and_size(name, ret_dtype);
}

static enum dtype signed_of_size(size_t size)
{
    switch (size) {
    case 1: return DTYPE_INT8;
    case 2: return DTYPE_INT16;
    case 4: return DTYPE_INT32;
    default: return DTYPE_INT64;
    }
}

/* `wide` has the higher kind. */
static enum dtype promote_kinds(enum dtype narrow, enum dtype wide)
{
    size_t narrow_size = dtype_size(narrow), wide_size = dtype_size(wide);
    if (infos[narrow].kind == KIND_BOOL)
        return wide;
    if (infos[wide].kind == KIND_FLOAT)
        return narrow_size <= 2 ? wide : DTYPE_FLOAT64;
    if (narrow_size < wide_size) /* unsigned with a wider signed */
        return wide;
    return narrow_size == 8 ? DTYPE_FLOAT64 : signed_of_size(2 * narrow_size);
}

enum dtype dtype_promote(enum dtype a, enum dtype b)
{
    if (infos[a].kind == infos[b].kind)
        return dtype_size(a) >= dtype_size(b) ? a : b;
    return infos[a].kind < infos[b].kind ? promote_kinds(a, b) : promote_kinds(b, a);
}

bool dtype_can_cast_same_kind(enum dtype from, enum dtype to)
{
    return infos[from].kind <= infos[to].kind;
}
