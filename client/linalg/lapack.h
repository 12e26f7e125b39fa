/* LAPACK and BLAS, from OpenBLAS, in the user's own process: for matrices that are small.
 *
 * OpenBLAS is looked for when something is first decomposed, so that nobody else's program loads 30
 * MiB of it and its threads. Fortran's conventions: everything by address, matrices by columns, and
 * behind the arguments a length for each text.
 */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>

/* X(result, name, arguments) */
#define LAPACK_TABLE(X)                                                                            \
    X(void, dgemm_,                                                                                \
      (const char *transa, const char *transb, const int *m, const int *n, const int *k,           \
       const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,      \
       const double *beta, double *c, const int *ldc, size_t, size_t))                             \
    X(void, dsyrk_,                                                                                \
      (const char *uplo, const char *trans, const int *n, const int *k, const double *alpha,       \
       const double *a, const int *lda, const double *beta, double *c, const int *ldc, size_t,     \
       size_t))                                                                                    \
    X(void, dpotrf_,                                                                               \
      (const char *uplo, const int *n, double *a, const int *lda, int *info, size_t))              \
    X(void, dtrsm_,                                                                                \
      (const char *side, const char *uplo, const char *transa, const char *diag, const int *m,     \
       const int *n, const double *alpha, const double *a, const int *lda, double *b,              \
       const int *ldb, size_t, size_t, size_t, size_t))                                            \
    X(void, dgetrf_,                                                                               \
      (const int *m, const int *n, double *a, const int *lda, int *ipiv, int *info))               \
    X(void, dpotrs_,                                                                               \
      (const char *uplo, const int *n, const int *nrhs, const double *a, const int *lda,           \
       double *b, const int *ldb, int *info, size_t))                                              \
    X(void, dpocon_,                                                                               \
      (const char *uplo, const int *n, const double *a, const int *lda, const double *anorm,       \
       double *rcond, double *work, int *iwork, int *info, size_t))                                \
    X(void, dgelqf_,                                                                               \
      (const int *m, const int *n, double *a, const int *lda, double *tau, double *work,           \
       const int *lwork, int *info))                                                               \
    X(void, dorglq_,                                                                               \
      (const int *m, const int *n, const int *k, double *a, const int *lda, const double *tau,     \
       double *work, const int *lwork, int *info))                                                 \
    X(void, dtplqt_,                                                                               \
      (const int *m, const int *n, const int *l, const int *mb, double *a, const int *lda,         \
       double *b, const int *ldb, double *t, const int *ldt, double *work, int *info))             \
    X(void, dgesdd_,                                                                               \
      (const char *jobz, const int *m, const int *n, double *a, const int *lda, double *s,         \
       double *u, const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork,     \
       int *iwork, int *info, size_t))                                                             \
    X(void, dsyevd_,                                                                               \
      (const char *jobz, const char *uplo, const int *n, double *a, const int *lda, double *w,     \
       double *work, const int *lwork, int *iwork, const int *liwork, int *info, size_t, size_t))  \
    X(void, dsyevr_,                                                                               \
      (const char *jobz, const char *range, const char *uplo, const int *n, double *a,             \
       const int *lda, const double *vl, const double *vu, const int *il, const int *iu,           \
       const double *abstol, int *m, double *w, double *z, const int *ldz, int *isuppz,            \
       double *work, const int *lwork, int *iwork, const int *liwork, int *info, size_t, size_t,   \
       size_t))                                                                                    \
    X(int, openblas_get_num_threads, (void))                                                       \
    X(void, openblas_set_num_threads, (int n))

struct lapack {
#define LAPACK_MEMBER(result, name, arguments) result(*name) arguments;
    LAPACK_TABLE(LAPACK_MEMBER)
#undef LAPACK_MEMBER
};

/* Before calls of it, and after: within, OpenBLAS works in the calling thread alone, as other
 * threads of its own would spin beside the daemon's. not-found: it is not installed.
 * is_long: it works in as many threads as the process lets it, where nobody else is within. */
int lapack_begin(bool is_long, const struct lapack **ret_lapack,
                 struct gad_error *error) GAD_MUST_CHECK;
void lapack_end(const struct lapack *lapack);
