/* Names and words for callers: statuses, dtypes, the version. All static. */
#include "client/gpuarrayd.h"
#include "proto/dtype.h"
#include "proto/error.h"

_Static_assert((int)GAD_BOOL == (int)DTYPE_BOOL && (int)GAD_INT64 == (int)DTYPE_INT64 &&
                   (int)GAD_UINT64 == (int)DTYPE_UINT64 && (int)GAD_FLOAT64 == (int)DTYPE_FLOAT64,
               "the public dtypes are the protocol's");

static bool is_dtype(enum gad_dtype dtype)
{
    return (int)dtype >= 0 && (int)dtype < (int)DTYPE_COUNT;
}

const char *gad_status_word(int status)
{
    return error_word(status);
}

const char *gad_status_text(int status)
{
    return error_text(status);
}

const char *gad_dtype_name(enum gad_dtype dtype)
{
    return is_dtype(dtype) ? dtype_name((enum dtype)dtype) : "unknown";
}

size_t gad_dtype_size(enum gad_dtype dtype)
{
    return is_dtype(dtype) ? dtype_size((enum dtype)dtype) : 0;
}

const char *gad_version(void)
{
    return GPUARRAYD_VERSION;
}
