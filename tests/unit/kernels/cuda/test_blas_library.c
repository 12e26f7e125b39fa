/* Finding cuBLAS: which of the files is taken, what is said where none is of use, and what of the
 * environment the library must not see. The files are fakes. */
#include "kernels/cuda/product/blas.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHOLE      FAKES "/libcublas.so"
#define INCOMPLETE FAKES "/libincomplete.so"

static int open_of(const char *first, const char *second, struct gad_error *error)
{
    const char *const names[] = {first, second, NULL};
    struct blas_functions functions;
    int version = 0, r = blas_library_open_one(names, &functions, error);
    if (r == 0)
        cr_assert(eq(int, functions.get_version(NULL, &version), 0));
    return r ? r : version;
}

Test(blas_library, takes_the_first_that_is_there_and_whole)
{
    struct gad_error error = {0};
    cr_assert(eq(int, open_of(WHOLE, NULL, &error), 120304));
    cr_assert(eq(int, open_of("libno-such-library.so.1", WHOLE, &error), 120304));
    cr_assert(eq(int, open_of(INCOMPLETE, WHOLE, &error), 120304));
}

Test(blas_library, says_its_version_and_whether_it_is_too_old)
{
    static const struct {
        int version;
        const char *text;
        bool is_enough;
    } cases[] = {{130100, "cuBLAS 13.1.0", true}, {120304, "cuBLAS 12.3.4", true},
                 {110902, "cuBLAS 11.9.2", true}, {11605, "cuBLAS 11.6.5", true},
                 {11000, "cuBLAS 11.0.0", true},  {10203, "cuBLAS 10.2.3", false},
                 {0, "cuBLAS 0.0.0", false}};
    for (int i = 0; i < 7; i++) {
        char text[BLAS_VERSION_SIZE];
        bool is_enough = blas_version_text(cases[i].version, text);
        cr_assert(eq(int, is_enough, cases[i].is_enough));
        cr_assert(eq(int, strcmp(text, cases[i].text), 0), "%s", text);
    }
}

Test(blas_library, is_of_11_where_there_is_no_newer_one)
{
    char folder[] = "/tmp/gpuarrayd-blas-XXXXXX", lib64[PATH_MAX], link[PATH_MAX + 32];
    struct gad_error error = {0};
    struct blas_functions functions;
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    snprintf(lib64, sizeof(lib64), "%s/lib64", folder);
    cr_assert(eq(int, mkdir(lib64, 0700), 0));
    snprintf(link, sizeof(link), "%s/libcublas.so.11", lib64);
    cr_assert(eq(int, symlink(WHOLE, link), 0));
    cr_assert(eq(int, setenv("CUDA_PATH", folder, 1), 0));
    cr_assert(eq(int, blas_library_open(&functions, &error), 0), "%s", error.message);
    unlink(link);
    rmdir(lib64);
    rmdir(folder);
}

Test(blas_library, says_what_is_missing)
{
    struct gad_error error = {0};
    cr_assert(eq(int, open_of("libno-such-library.so.1", "libnor-this.so", &error), GAD_NO_ENGINE));
    cr_assert(
        ne(ptr, strstr(error.message, "cuBLAS cannot be opened: libno-such-library.so.1"), NULL),
        "%s", error.message);
    cr_assert(eq(int, open_of("libno-such-library.so.1", INCOMPLETE, &error), GAD_NO_ENGINE));
    cr_assert(ne(ptr, strstr(error.message, "libincomplete.so has no cublasSetWorkspace_v2"), NULL),
              "%s", error.message);
}

Test(blas_library, is_that_of_the_toolkit_of_cuda_path_and_computes_as_precisely_as_asked)
{
    char folder[] = "/tmp/gpuarrayd-blas-XXXXXX", link[PATH_MAX];
    struct gad_error error = {0};
    struct blas_functions functions;
    int version = 0;
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    snprintf(link, sizeof(link), "%s/lib64", folder);
    cr_assert(eq(int, symlink(FAKES, link), 0));
    cr_assert(eq(int, setenv("CUDA_PATH", folder, 1), 0));
    cr_assert(eq(int, setenv("NVIDIA_TF32_OVERRIDE", "1", 1), 0));
    cr_assert(eq(int, setenv("CUBLAS_EMULATE_SINGLE_PRECISION", "1", 1), 0));
    cr_assert(eq(int, blas_library_open(&functions, &error), 0), "%s", error.message);
    cr_assert(eq(int, functions.get_version(NULL, &version), 0));
    cr_assert(eq(int, version, 120304));
    cr_assert(eq(ptr, functions.set_warming_up, NULL));
    cr_assert(eq(ptr, getenv("NVIDIA_TF32_OVERRIDE"), NULL));
    cr_assert(eq(ptr, getenv("CUBLAS_EMULATE_SINGLE_PRECISION"), NULL));
    unlink(link);
    rmdir(folder);
}

static char top[] = "/tmp/gpuarrayd-blas-XXXXXX";

/* A folder below `top`, with a link to the fake library. */
static void make_folder(const char *below, char ret_file[static PATH_MAX])
{
    char command[2 * PATH_MAX];
    snprintf(ret_file, PATH_MAX, "%s/%s/libcublas.so.12", top, below);
    snprintf(command, sizeof(command), "mkdir -p '%s/%s' && ln -s '%s' '%s'", top, below, WHOLE,
             ret_file);
    cr_assert(eq(int, system(command), 0));
}

static void remove_all(void)
{
    char command[PATH_MAX];
    snprintf(command, sizeof(command), "rm -r '%s'", top);
    cr_assert(eq(int, system(command), 0));
}

Test(blas_library, is_where_the_administrator_says_and_nowhere_else, .fini = remove_all)
{
    struct gad_error error = {0};
    struct blas_functions functions;
    char file[PATH_MAX], folder[PATH_MAX];
    cr_assert(ne(ptr, mkdtemp(top), NULL));
    make_folder("there", file);
    snprintf(folder, sizeof(folder), "%s/there", top);
    const char *const right[] = {file, folder};
    for (int i = 0; i < 2; i++) {
        setenv("GPUARRAYD_CUBLAS", right[i], 1);
        cr_assert(eq(int, blas_library_open(&functions, &error), 0), "%s", error.message);
    }
    setenv("CUDA_PATH", top, 1);
    make_folder("lib64", file);
    setenv("GPUARRAYD_CUBLAS", "/no/such/libcublas.so.12", 1);
    cr_assert(eq(int, blas_library_open(&functions, &error), GAD_NO_ENGINE));
    cr_assert(ne(ptr, strstr(error.message, "/no/such/libcublas.so.12"), NULL), "%s",
              error.message);
    unsetenv("GPUARRAYD_CUBLAS");
    cr_assert(eq(int, blas_library_open(&functions, &error), 0), "%s", error.message);
}

Test(blas_library, is_that_of_an_environment_of_python, .fini = remove_all)
{
    static const char *const packages[] = {"nvidia/cu13/lib", "nvidia/cublas/lib"};
    struct blas_functions functions;
    cr_assert(ne(ptr, mkdtemp(top), NULL));
    unsetenv("CUDA_PATH");
    setenv("VIRTUAL_ENV", top, 1);
    struct gad_error error = {0};
    if (blas_library_open(&functions, &error) == 0)
        cr_skip("this machine has a cuBLAS of its own");
    for (int i = 0; i < 2; i++) {
        char below[PATH_MAX], file[PATH_MAX];
        snprintf(below, sizeof(below), "lib/python3.11/site-packages/%s", packages[i]);
        make_folder(below, file);
        cr_assert(eq(int, blas_library_open(&functions, &error), 0), "%s", error.message);
        unlink(file);
        cr_assert(eq(int, blas_library_open(&functions, &error), GAD_NO_ENGINE));
    }
}
