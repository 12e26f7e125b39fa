/* Finding cuBLAS: in the toolkit that CUDA_PATH names, where the loader looks, or in the usual
 * toolkit, which nobody need have told the loader about. Its version need not be that of our
 * runtime: what is called has been the same since 11.
 *
 * Variables of the environment can make the library compute less precisely than it is asked to, for
 * all that the process does. A service must not inherit that from who started it, so they are taken
 * away before the library reads them.
 *
 * Called once, when the CUDA worker starts.
 */
#include "kernels/cuda/product/blas.h"
#include "proto/util.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_FOLDERS 3

static const char *const file_names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                         "libcublas.so.11"};

static const char *const precision_variables[] = {
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_EMULATE_SINGLE_PRECISION",
    "CUBLAS_EMULATE_DOUBLE_PRECISION",
    "CUBLAS_EMULATION_STRATEGY",
};

static bool find_all(void *library, struct blas_functions *f, const char **ret_missing)
{
    const struct {
        void **function;
        const char *name;
    } wanted[] = {
        {(void **)&f->create, "cublasCreate_v2"},
        {(void **)&f->destroy, "cublasDestroy_v2"},
        {(void **)&f->get_version, "cublasGetVersion_v2"},
        {(void **)&f->set_stream, "cublasSetStream_v2"},
        {(void **)&f->set_workspace, "cublasSetWorkspace_v2"},
        {(void **)&f->set_math_mode, "cublasSetMathMode"},
        {(void **)&f->gemm_strided_batched, "cublasGemmStridedBatchedEx"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++) {
        *wanted[i].function = dlsym(library, wanted[i].name);
        *ret_missing = wanted[i].name;
        if (!*wanted[i].function)
            return false;
    }
    return true;
}

int blas_library_open_one(const char *const *names, struct blas_functions *ret_functions,
                          struct gad_error *error)
{
    char why[512] = "";
    for (; *names; names++) {
        struct blas_functions functions = {NULL};
        const char *missing;
        void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (library && find_all(library, &functions, &missing)) {
            *ret_functions = functions;
            return 0;
        }
        /* The loader's words on the first, unless a later one is there and of no use. */
        if (library)
            snprintf(why, sizeof(why), "%s has no %s", *names, missing);
        else if (!*why)
            snprintf(why, sizeof(why), "%s", dlerror());
        if (library)
            dlclose(library);
    }
    return error_set(error, GAD_NO_ENGINE, "engine", "cuBLAS cannot be opened: %s", why);
}

static bool write_name(char name[static PATH_MAX], const char *folder, const char *file)
{
    int n = snprintf(name, PATH_MAX, "%s%s%s", folder, *folder ? "/" : "", file);
    return n > 0 && n < PATH_MAX;
}

static const char *toolkit_folder(char folder[static PATH_MAX])
{
    const char *toolkit = getenv("CUDA_PATH");
    return toolkit && *toolkit == '/' && write_name(folder, toolkit, "lib64") ? folder : NULL;
}

int blas_library_open(struct blas_functions *ret_functions, struct gad_error *error)
{
    static char of_toolkit[PATH_MAX], paths[N_FOLDERS * ARRAY_LENGTH(file_names)][PATH_MAX];
    const char *const folders[N_FOLDERS] = {toolkit_folder(of_toolkit), "",
                                            "/usr/local/cuda/lib64"};
    const char *names[ARRAY_LENGTH(paths) + 1] = {NULL};
    size_t n = 0;

    for (size_t i = 0; i < N_FOLDERS; i++) {
        for (size_t j = 0; j < ARRAY_LENGTH(file_names) && folders[i]; j++) {
            if (!write_name(paths[n], folders[i], file_names[j]))
                continue;
            names[n] = paths[n];
            n++;
        }
    }
    for (size_t i = 0; i < ARRAY_LENGTH(precision_variables); i++)
        unsetenv(precision_variables[i]);
    return blas_library_open_one(names, ret_functions, error);
}
