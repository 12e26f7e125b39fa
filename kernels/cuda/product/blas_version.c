/* cuBLAS's version as it tells it: 130100 is 13.1.0. Until some 11 there was one digit less for the
 * minor one: 11605 is 11.6.5.
 *
 * Called when the CUDA worker starts.
 */
#include "kernels/cuda/product/blas.h"

#include <stdio.h>

#define OLDEST_MAJOR 11
#define FIRST_LONG   100000

bool blas_version_text(int version, char text[static BLAS_VERSION_SIZE])
{
    int scale = version < FIRST_LONG ? 1000 : 10000;
    int major = version / scale, minor = version % scale / 100, patch = version % 100;

    snprintf(text, BLAS_VERSION_SIZE, "cuBLAS %d.%d.%d", major, minor, patch);
    return major >= OLDEST_MAJOR;
}
