/* Many sources as one array: behind each other along an axis, or along a new one.
 *
 *     each of 3 files   spec                          shape
 *     (100, 8)          'run_*.npy'                   (300, 8)
 *                       'run_*.npy:stack'             (3, 100, 8)
 *                       'run_*.npy:stack[1, :10]'     (10, 8), of the second file alone
 */
#pragma once

#include "client/array.h"

#include <stddef.h>

/* A spec whose path is a pattern. The texts are heap strings. */
struct many_pattern {
    char *path, *rest;   /* rest: what follows the path, "" or ":..." */
    bool is_stack;       /* the spec ends in `:stack` */
    size_t selection_at; /* of the bracket in the spec; 0: there is none */
};

/* Takes a spec apart. false: it is none whose path is a pattern, or there is no memory. */
bool many_pattern_parse(const char *text, struct many_pattern *ret_pattern);
void many_pattern_deinit(struct many_pattern *pattern);

/* All files that match, in natural order; the selection is of all of them together. */
int many_open_pattern(struct gad_client *client, const struct many_pattern *pattern,
                      const char *text, enum gad_masking masking, struct gad_array **ret_array,
                      struct gad_error *error) GAD_MUST_CHECK;

/* Each of them, and the files of those that are patterns. n: at least 1. */
int many_open_list(struct gad_client *client, size_t n, const char *const *specs,
                   const struct gad_join_options *options, struct gad_array **ret_array,
                   struct gad_error *error) GAD_MUST_CHECK;
