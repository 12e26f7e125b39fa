/* Finding cuBLAS: where GPUARRAYD_CUBLAS says (the file, or its folder) and nowhere else; else in
 * the toolkit that CUDA_PATH names, where the loader looks, in the usual toolkit, which nobody need
 * have told the loader about, or in the packages of Python that have it: those of the environment
 * that VIRTUAL_ENV names, as a user's own daemon may have, or the system's. Its version need not be
 * that of our runtime: what is called has been the same since 11.
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
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_NAMES 64

/* Newer ones first. */
static const char *const package_folders[] = {"nvidia/cu13/lib", "nvidia/cublas/lib"};
static const char *const python_folders[] = {
    "/usr/local/lib/python3*/dist-packages", "/usr/local/lib/python3*/site-packages",
    "/usr/lib/python3*/site-packages", "/usr/lib/python3/dist-packages"};

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

/* What is tried, in order. */
struct search {
    char *names[MAX_NAMES + 1]; /* NULL behind the last */
    size_t n;
};

static void add_file(struct search *s, const char *folder, const char *file)
{
    if (s->n < MAX_NAMES &&
        asprintf(&s->names[s->n], "%s%s%s", folder, *folder ? "/" : "", file) > 0)
        s->n++;
}

static void add_folder(struct search *s, const char *folder)
{
    for (size_t i = 0; i < ARRAY_LENGTH(file_names); i++)
        add_file(s, folder, file_names[i]);
}

/* Only what is there: so the loader's words, if there is nothing at all, are on the usual name. */
static void add_packages(struct search *s, const char *pattern)
{
    for (size_t i = 0; i < ARRAY_LENGTH(package_folders); i++) {
        char folders[PATH_MAX];
        glob_t found;
        int n = snprintf(folders, sizeof(folders), "%s/%s", pattern, package_folders[i]);
        if (n < 0 || n >= PATH_MAX || glob(folders, 0, NULL, &found) != 0)
            continue;
        for (size_t k = found.gl_pathc; k > 0; k--)
            add_folder(s, found.gl_pathv[k - 1]);
        globfree(&found);
    }
}

/* A folder of a variable, with what is below it. */
static bool folder_of(const char *variable, const char *below, char ret_folder[static PATH_MAX])
{
    const char *folder = getenv(variable);
    int n = folder ? snprintf(ret_folder, PATH_MAX, "%s%s", folder, below) : 0;
    return n > 0 && n < PATH_MAX && *folder == '/';
}

static void list_all(struct search *s)
{
    char folder[PATH_MAX];

    if (folder_of("GPUARRAYD_CUBLAS", "", folder)) {
        struct stat st;
        if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode))
            add_folder(s, folder);
        else
            add_file(s, "", folder);
        return;
    }
    if (folder_of("CUDA_PATH", "/lib64", folder))
        add_folder(s, folder);
    add_folder(s, "");
    add_folder(s, "/usr/local/cuda/lib64");
    if (folder_of("VIRTUAL_ENV", "/lib/python3*/site-packages", folder))
        add_packages(s, folder);
    for (size_t i = 0; i < ARRAY_LENGTH(python_folders); i++)
        add_packages(s, python_folders[i]);
}

int blas_library_open(struct blas_functions *ret_functions, struct gad_error *error)
{
    struct search search = {.n = 0};

    list_all(&search);
    for (size_t i = 0; i < ARRAY_LENGTH(precision_variables); i++)
        unsetenv(precision_variables[i]);
    search.names[search.n] = NULL;
    int r = blas_library_open_one((const char *const *)search.names, ret_functions, error);
    for (size_t i = 0; i < search.n; i++)
        free(search.names[i]);
    return r;
}
