/* From specs to an array of many files.
 *
 * A pattern is taken apart, its files are looked at once, in natural order (many_look.c), the
 * selection is laid on them (many_select.c), and what is left are members that are read when blocks
 * are asked for (many_provider.c). A list of specs is the same without a selection. Where one file
 * is left and has all axes of the result, that is opened as if it had been named alone.
 *
 * Such an array is only read: an output is one file.
 *
 * Called by format.c.
 */
#include "client/formats/many/many.h"
#include "client/formats/attributes.h"
#include "client/formats/chunk_grid.h"
#include "client/formats/format_impl.h"
#include "client/formats/many/many_impl.h"
#include "client/formats/many/pattern.h"
#include "client/formats/selection.h"
#include "client/meaning.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

#define STACK ":stack"

/* Members -------------------------------------------------------------------------------------- */

/* NULL: no memory. */
static struct many *many_new(void)
{
    struct many *many = calloc(1, sizeof(*many));
    if (!many)
        return NULL;
    many->max_open = many_max_open();
    pthread_mutex_init(&many->lock, NULL);
    return many;
}

void member_deinit(struct member *member)
{
    free_ptr(&member->path);
    free_ptr(&member->name);
}

void many_forget_members(struct many *many)
{
    while (many->n_members > 0)
        member_deinit(&many->members[--many->n_members]);
}

/* NULL allowed; returns NULL. */
static struct many *many_free(struct many *many)
{
    if (!many)
        return NULL;
    many->is_watched = false;
    if (many->failed)
        many_let_go(many, steal_ptr(many->failed));
    many_close_all(many);
    gad_array_release(many->first);
    many_forget_members(many);
    free(many->members);
    while (many->groups) {
        struct group *group = many->groups;
        many->groups = group->next;
        spec_deinit(&group->spec);
        free(group);
    }
    pthread_mutex_destroy(&many->lock);
    free(many);
    return NULL;
}

/* Takes over both texts. */
static int add_member(struct many *many, const struct spec *spec, char *path, char *name,
                      size_t selection_at)
{
    struct member member = {.spec = spec, .path = path, .name = name, .selection_at = selection_at};
    bool is_good = path && name;
    if (is_good && many->n_members == many->n_allocated) {
        size_t n = many->n_allocated ? 2 * many->n_allocated : 64;
        struct member *members = realloc(many->members, n * sizeof(*members));
        is_good = members != NULL;
        many->members = members ? members : many->members;
        many->n_allocated = members ? n : many->n_allocated;
    }
    if (!is_good) {
        member_deinit(&member);
        return -ENOMEM;
    }
    many->members[many->n_members++] = member;
    return 0;
}

/* Takes over the spec. NULL: no memory. */
static struct spec *add_group(struct many *many, struct spec *spec)
{
    struct group *group = malloc(sizeof(*group));
    if (!group) {
        spec_deinit(spec);
        return NULL;
    }
    *group = (struct group){.next = many->groups, .spec = *spec};
    many->groups = group;
    return &group->spec;
}

/* Patterns ------------------------------------------------------------------------------------- */

static bool take_word(char *text, const char *word)
{
    size_t n = strlen(text), n_word = strlen(word);
    if (n <= n_word || strcmp(text + n - n_word, word) != 0)
        return false;
    text[n - n_word] = '\0';
    return true;
}

/* Brackets behind the extension alone make none: they stand where a selection does not belong. */
static bool is_pattern(const char *path)
{
    size_t n = strlen(path), at;
    while (selection_find(path, n, &at))
        n = at;
    _cleanup_free_ char *name = strndup(path, n);
    return name && pattern_is(name) && pattern_is(path);
}

bool many_pattern_parse(const char *text, struct many_pattern *ret_pattern)
{
    struct many_pattern pattern = {.path = NULL};
    struct format_place place;
    size_t n = strlen(text);
    if (!pattern_is(text)) /* quick, and most are none */
        return false;
    if (selection_find(text, n, &pattern.selection_at))
        n = pattern.selection_at;
    while (n > 0 && text[n - 1] == ' ')
        n--;
    _cleanup_free_ char *name = strndup(text, n);
    if (!name)
        return false;
    pattern.is_stack = take_word(name, STACK);
    if (spec_place(name, text, &place, NULL))
        return false;
    pattern.path = place.path;
    pattern.rest = is_pattern(place.path) ? strdup(place.rest) : NULL;
    if (!pattern.rest) {
        many_pattern_deinit(&pattern);
        return false;
    }
    *ret_pattern = pattern;
    return true;
}

void many_pattern_deinit(struct many_pattern *pattern)
{
    free_ptr(&pattern->path);
    free_ptr(&pattern->rest);
}

static char *joined(const char *path, const char *rest)
{
    char *text;
    return asprintf(&text, "%s%s", path, rest) < 0 ? NULL : text;
}

/* Brackets behind a dataset are its own where the first file has such a one. */
static int take_literal(struct spec *spec, const char *first, const struct many_pattern *pattern,
                        const char *text, size_t *selection_at, struct gad_error *error)
{
    const struct format *format = format_of_file(spec->format, first);
    if (*selection_at == 0 || !format->has_dataset || !format->normalise)
        return 0;
    _cleanup_free_ char *rest = joined(pattern->rest, text + *selection_at);
    char *literal = rest ? format->normalise(rest) : NULL;
    if (!literal)
        return error_from_errno(error, ENOMEM, text, "spec");
    if (!format->has_dataset(first, literal)) {
        free(literal);
        return 0;
    }
    free(spec->dataset);
    spec->dataset = literal;
    *selection_at = 0;
    return 0;
}

static int add_files(struct many *many, const struct many_pattern *pattern, const char *text,
                     struct spec *spec, size_t *selection_at, struct gad_error *error)
{
    struct pattern_match match;
    int r = pattern_expand(pattern->path, text, &match, error);
    if (r)
        return r;
    r = take_literal(spec, match.paths[0], pattern, text, selection_at, error);
    for (size_t i = 0; i < match.n && r == 0; i++) {
        char *name = joined(match.paths[i], pattern->rest);
        r = add_member(many, spec, steal_ptr(match.paths[i]), name, 0);
    }
    pattern_match_deinit(&match);
    return r;
}

static int add_matches(struct many *many, const struct many_pattern *pattern, const char *text,
                       size_t *selection_at, struct gad_error *error)
{
    struct spec spec;
    _cleanup_free_ char *name = joined(pattern->path, pattern->rest);
    int r = name ? spec_parse(name, false, &spec, error) : -ENOMEM;
    if (r == 0) {
        struct spec *group = add_group(many, &spec);
        r = group ? add_files(many, pattern, text, group, selection_at, error) : -ENOMEM;
    }
    return r < 0 ? error_from_errno(error, -r, text, "the files of a pattern") : r;
}

/* Arrays --------------------------------------------------------------------------------------- */

static void free_array(struct gad_array *array)
{
    array->format_state = many_free(array->format_state);
}

static void describe(struct gad_array *array, const struct many *many)
{
    struct chunk_grid grid;
    const struct array *form = &many->form;
    array->info.dtype = (enum gad_dtype)form->dtype;
    array->info.is_swapped = form->is_swapped;
    array->info.ndim = form->ndim;
    memcpy(array->info.shape, form->shape, sizeof(form->shape));
    array->info.n_files = many->n_members;
    if (!many->has_chunks || many->length == 0 ||
        !chunk_grid_init(&grid, form->ndim, form->shape, many->chunk_shape,
                         (int64_t)dtype_size(form->dtype)))
        return;
    memcpy(array->chunk_shape, many->chunk_shape, sizeof(array->chunk_shape));
    array->n_chunks = grid.n_chunks;
}

/* NULL: no memory. */
static char *names_of(const struct many *many)
{
    size_t n = 1, at = 0;
    for (size_t i = 0; i < many->n_members; i++)
        n += strlen(many->members[i].name) + 1;
    char *names = calloc(n, 1);
    for (size_t i = 0; names && i < many->n_members; i++)
        at += (size_t)snprintf(names + at, n - at, "%s", many->members[i].name) + 1;
    return names;
}

/* What not all members say. */
static void drop_others(const struct many *many, struct meaning *meaning)
{
    meaning_attributes_drop(meaning->attributes, many->other_attributes);
    for (int i = 0; i < many->first->info.ndim; i++)
        if (many->other_names >> i & 1)
            free_ptr(&meaning->dimensions[i]);
}

static int describe_meaning(struct gad_array *array, struct many *many)
{
    const struct gad_array_info *first = &many->first->info;
    if (!many->is_alike)
        return 0;
    array->info.has_fill = first->has_fill;
    array->info.exact_fill = first->exact_fill;
    array->info.fill = first->fill;
    if (many->first->meaning)
        drop_others(many, many->first->meaning);
    int r = meaning_copy_to_view(many->first, array, many->form.ndim, many->own_axes, many->starts,
                                 many->steps);
    if (r == 0 && array->meaning) {
        char *names = names_of(many);
        if (!names)
            return -ENOMEM;
        attributes_join(array, many->axis, many->is_new_axis, names);
    }
    return r;
}

static bool is_all_plain(const struct many *many)
{
    size_t i = 0;
    while (i < many->n_members && many->members[i].is_plain)
        i++;
    return i == many->n_members;
}

/* Takes over `many`. */
static int make_array(struct gad_client *client, struct many *many, const char *name,
                      struct gad_array **ret_array, struct gad_error *error)
{
    struct gad_array *array = array_new(client, many->format, ACCESS_PROVIDER, NULL);
    if (!array) {
        many_free(many);
        return error_from_errno(error, ENOMEM, name, "array");
    }
    many->plain.info.dtype = (enum gad_dtype)many->form.dtype;
    many->plain.info.ndim = many->member_ndim;
    describe(array, many);
    array->provider = is_all_plain(many) ? &many_provider_plain : &many_provider;
    array->provider_state = array->format_state = many;
    array->maker_free = free_array;
    if (describe_meaning(array, many)) {
        gad_array_release(array);
        return error_from_errno(error, ENOMEM, name, "attributes");
    }
    gad_array_release(steal_ptr(many->first));
    *ret_array = array;
    return 0;
}

/* Takes over `many`. is_one: the first member has all axes of the result. */
static int finish(struct gad_client *client, struct many *many, bool is_one, const char *name,
                  struct gad_array **ret_array, struct gad_error *error)
{
    if (!is_one)
        return make_array(client, many, name, ret_array, error);
    int r = member_open(&many->members[0], client, ret_array, error);
    if (r == 0)
        (*ret_array)->info.n_files = 1;
    many_free(many);
    return r;
}

int many_open_pattern(struct gad_client *client, const struct many_pattern *pattern,
                      const char *text, enum gad_masking masking, struct gad_array **ret_array,
                      struct gad_error *error)
{
    const struct gad_join_options options = {.is_new_axis = pattern->is_stack, .masking = masking};
    struct many *many = many_new();
    size_t selection_at = pattern->selection_at;
    bool is_one = false;
    if (!many)
        return error_from_errno(error, ENOMEM, text, "array");
    int r = add_matches(many, pattern, text, &selection_at, error);
    if (r == 0)
        r = many_look(many, &options, text, error);
    if (r == 0 && selection_at > 0)
        r = many_select(many, text, selection_at, &is_one, error);
    if (r) {
        many_free(many);
        return r;
    }
    is_one |= many->n_members == 1 && !many->is_new_axis;
    return finish(client, many, is_one, text, ret_array, error);
}

/* Lists ---------------------------------------------------------------------------------------- */

static int add_pattern(struct many *many, const struct many_pattern *pattern, const char *text,
                       struct gad_error *error)
{
    size_t selection_at = 0;
    if (pattern->is_stack || pattern->selection_at) {
        error_set(error, GAD_BAD_ARGUMENT, text,
                  "a pattern in a list stands for its files: nothing is said of all of them");
        error_expected(error, "a pattern without %s", pattern->is_stack ? STACK : "a selection");
        error_found(error, "'%.100s'", text);
        return GAD_BAD_ARGUMENT;
    }
    return add_matches(many, pattern, text, &selection_at, error);
}

static int add_one(struct many *many, const char *text, struct gad_error *error)
{
    struct many_pattern pattern;
    struct spec spec;
    if (many_pattern_parse(text, &pattern)) {
        int r = add_pattern(many, &pattern, text, error);
        many_pattern_deinit(&pattern);
        return r;
    }
    int r = format_parse(text, false, &spec, error);
    if (r)
        return r;
    size_t selection_at = spec.selection_at;
    const struct spec *group = add_group(many, &spec);
    r = group ? add_member(many, group, strdup(group->path), strdup(text), selection_at) : -ENOMEM;
    return r < 0 ? error_from_errno(error, -r, text, "spec") : r;
}

int many_open_list(struct gad_client *client, size_t n, const char *const *specs,
                   const struct gad_join_options *options, struct gad_array **ret_array,
                   struct gad_error *error)
{
    struct many *many = many_new();
    int r = many ? 0 : error_from_errno(error, ENOMEM, "specs", "array");
    for (size_t i = 0; i < n && r == 0; i++)
        r = add_one(many, specs[i], error);
    if (r == 0)
        r = many_look(many, options, "specs", error);
    if (r) {
        many_free(many);
        return r;
    }
    return finish(client, many, many->n_members == 1 && !options->is_new_axis, specs[0], ret_array,
                  error);
}
