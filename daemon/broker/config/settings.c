/* The settings: reading and writing a value by its row of the table.
 *
 * A row names a field of struct options by offset and size, and the kind says what is in it. So the
 * command line, the file, a reload and the printed file go through the same few functions, and
 * none of them can know a setting that another does not.
 *
 * Called by options.c, config.c and reload.c.
 */
#include "daemon/broker/config/settings.h"
#include "daemon/broker/config/settings_table.h"
#include "proto/system/units.h"
#include "proto/ops.h"
#include "proto/util.h"

#include <assert.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

static const char *const levels[] = {"plain", "baseline", "avx2", "avx512"};
static const char *const engine_words[] = {
    [ENGINE_AUTO] = "auto", [ENGINE_CPU] = "cpu", [ENGINE_CUDA] = "cuda"};
static const char *const log_levels[] = {"error", "warn", "info", "debug"};

static const struct {
    const char *name, *doc;
} sections[] = {
    {"server", "The socket, and how the daemon leaves."},
    {"sessions", "What connections may make wait."},
    {"engine", "What jobs run in."},
    {"cuda", "What jobs on NVIDIA devices run in; each device has as much of its own."},
    {"queue", "What all users share."},
    {"users", "What one user may have and hold. What is over a limit is refused with "
              "quota-exceeded. Sections [user NAME] and [group NAME], by name or number, have the "
              "same settings for single users and for who is in a group: a user's own section "
              "comes first, then the file's first group that says something, then this one."},
    {"records", "What is remembered of jobs that have ended, for each user."},
    {"log", "What is written to standard error, which a service manager takes to its journal."},
};

const struct setting *setting_at(enum setting_id id)
{
    return &settings_table[id];
}

enum setting_id setting_find(const char *name)
{
    unsigned id = 0;
    while (id < SETTING_COUNT && strcmp(settings_table[id].name, name) != 0)
        id++;
    return (enum setting_id)id;
}

bool setting_is_section(const char *name)
{
    for (unsigned i = 0; i < ARRAY_LENGTH(sections); i++)
        if (strcmp(sections[i].name, name) == 0)
            return true;
    return false;
}

static void consider(const char *name, const char *candidate, unsigned *best_distance,
                     const char **best)
{
    size_t n = strlen(name);
    if (n > OP_NAME_MAX_CHARS)
        return;
    unsigned distance = op_name_distance(name, n, candidate, strlen(candidate));
    if (distance < *best_distance) {
        *best_distance = distance;
        *best = candidate;
    }
}

const char *setting_suggest(const char *name)
{
    const char *best = NULL;
    unsigned distance = strlen(name) <= 3 ? 2 : 4;
    for (unsigned i = 0; i < SETTING_COUNT; i++)
        consider(name, settings_table[i].name, &distance, &best);
    return best;
}

const char *setting_suggest_section(const char *name)
{
    const char *best = NULL;
    unsigned distance = 4;
    for (unsigned i = 0; i < ARRAY_LENGTH(sections); i++)
        consider(name, sections[i].name, &distance, &best);
    return best;
}

/* Values -------------------------------------------------------------------------------------- */

static void *field(const struct setting *s, const struct options *o)
{
    return (char *)(uintptr_t)o + s->offset;
}

static unsigned count_cpus(const struct setting *s)
{
    cpu_set_t set;
    uint64_t most;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    if (!units_parse_number(s->most, 10, &most))
        most = 1;
    return (unsigned)min_u64(n < 1 ? 1 : (uint64_t)n, most);
}

uint64_t settings_max_files(void)
{
    struct rlimit files = {.rlim_cur = 1024};
    getrlimit(RLIMIT_NOFILE, &files);
    return files.rlim_cur;
}

static unsigned quarter_of_files(void)
{
    return (unsigned)min_u64(settings_max_files() / 4, 1u << 30);
}

/* A number of the setting's kind, in its smallest unit. */
static bool parse_number(const struct setting *s, const char *text, uint64_t *ret)
{
    switch (s->kind) {
    case SETTING_IS_SIZE:
        return units_parse_size(text, ret) ||
               (!s->is_no_share && units_parse_share(text, units_memory_bytes(), ret));
    case SETTING_IS_SECONDS: return units_parse_seconds(text, ret);
    case SETTING_IS_MODE: return units_parse_number(text, 8, ret);
    case SETTING_IS_NUMBER: return units_parse_number(text, 10, ret);
    case SETTING_IS_TEXT:
    case SETTING_IS_LEVEL:
    case SETTING_IS_LOG_LEVEL:
    case SETTING_IS_ENGINE:
    case SETTING_IS_DEVICES: break;
    }
    return false;
}

static bool is_within(const struct setting *s, uint64_t value)
{
    uint64_t bound;
    if (s->least && parse_number(s, s->least, &bound) && value < bound)
        return false;
    return !s->most || !parse_number(s, s->most, &bound) || value <= bound;
}

const char *setting_kind_name(const struct setting *s)
{
    switch (s->kind) {
    case SETTING_IS_SIZE:
        return s->is_no_share ? "bytes, with K, M, G or T"
                              : "bytes, with K, M, G or T, or a share of the memory as in 50%";
    case SETTING_IS_SECONDS: return "seconds, or with ms, min or h";
    case SETTING_IS_NUMBER: return "a number";
    case SETTING_IS_MODE: return "an octal mode";
    case SETTING_IS_LEVEL: return "plain, baseline, avx2 or avx512";
    case SETTING_IS_LOG_LEVEL: return "error, warn, info or debug";
    case SETTING_IS_ENGINE: return "auto, cpu or cuda";
    case SETTING_IS_DEVICES: return "numbers of devices from 0 to 15, as in 0,2";
    case SETTING_IS_TEXT: break;
    }
    return s->size == SETTING_WORD_SIZE ? "a name" : "a path";
}

const char *setting_when(const struct setting *s)
{
    return s->is_reloadable ? "by a reload" : "at the next start";
}

static void say_expected(const struct setting *s, char *text, size_t n_bytes)
{
    int n = snprintf(text, n_bytes, "%s", setting_kind_name(s));
    if (s->least && s->most && n >= 0 && (size_t)n < n_bytes)
        n += snprintf(text + n, n_bytes - (size_t)n, ", from %s to %s", s->least, s->most);
    if (s->word && n >= 0 && (size_t)n < n_bytes)
        snprintf(text + n, n_bytes - (size_t)n, ", or %s", s->word);
}

static bool store_number(const struct setting *s, uint64_t value, struct options *o)
{
    if (!is_within(s, value))
        return false;
    if (s->size == sizeof(uint64_t))
        *(uint64_t *)field(s, o) = value;
    else if (value <= UINT32_MAX)
        *(uint32_t *)field(s, o) = (uint32_t)value;
    else
        return false;
    return true;
}

static bool store_text(const struct setting *s, const char *text, struct options *o)
{
    size_t n = strlen(text);
    if (n >= s->size || (n == 0 && !s->word))
        return false;
    memset(field(s, o), 0, s->size);
    memcpy(field(s, o), text, n);
    return true;
}

static bool store_word(const struct setting *s, struct options *o)
{
    if (s - settings_table == SETTING_THREADS)
        return store_number(s, count_cpus(s), o);
    if (s - settings_table == SETTING_USER_DESCRIPTORS)
        return store_number(s, max_u64(quarter_of_files(), 16), o);
    if (s->kind == SETTING_IS_SIZE)
        return *(uint64_t *)field(s, o) = OPTIONS_AUTO, true;
    if (s->kind == SETTING_IS_NUMBER)
        return *(uint32_t *)field(s, o) = 0, true;
    if (s->kind == SETTING_IS_DEVICES)
        return *(uint32_t *)field(s, o) = OPTIONS_ALL_DEVICES, true;
    return store_text(s, "", o);
}

static bool store_level(const struct setting *s, const char *text, struct options *o)
{
    for (unsigned i = 0; i < ARRAY_LENGTH(levels); i++)
        if (strcmp(text, levels[i]) == 0)
            return store_text(s, text, o);
    return false;
}

static bool store_engine(const char *text, struct options *o)
{
    for (unsigned i = 0; i < ARRAY_LENGTH(engine_words); i++) {
        if (strcmp(text, engine_words[i]) == 0) {
            o->engine = (enum engine_choice)i;
            return true;
        }
    }
    return false;
}

/* "0,2": each once. */
static bool store_devices(const char *text, struct options *o)
{
    char number[SETTING_WORD_SIZE];
    uint64_t index;
    uint32_t mask = 0;
    for (bool is_last = false; !is_last;) {
        size_t n = strcspn(text, ",");
        is_last = text[n] == '\0';
        if (n >= sizeof(number))
            return false;
        memcpy(number, text, n);
        number[n] = '\0';
        if (!units_parse_number(number, 10, &index) || index >= ENGINE_MAX_DEVICES ||
            (mask >> index & 1) != 0)
            return false;
        mask |= UINT32_C(1) << index;
        text += n + 1;
    }
    o->device_mask = mask;
    return true;
}

bool setting_parse(const struct setting *s, const char *text, struct options *o, char *expected,
                   size_t n_bytes)
{
    uint64_t value;
    bool is_good = false;
    if (s->word && strcmp(text, s->word) == 0)
        is_good = store_word(s, o);
    else if (s->kind == SETTING_IS_TEXT)
        is_good = text[0] != '\0' && store_text(s, text, o);
    else if (s->kind == SETTING_IS_LEVEL)
        is_good = store_level(s, text, o);
    else if (s->kind == SETTING_IS_LOG_LEVEL)
        is_good = log_level_from_name(text, &o->log_level);
    else if (s->kind == SETTING_IS_ENGINE)
        is_good = store_engine(text, o);
    else if (s->kind == SETTING_IS_DEVICES)
        is_good = store_devices(text, o);
    else if (parse_number(s, text, &value))
        is_good = store_number(s, value, o);
    if (!is_good)
        say_expected(s, expected, n_bytes);
    return is_good;
}

static void format_devices(uint32_t mask, char *text, size_t n_bytes)
{
    size_t n = 0;
    for (unsigned i = 0; i < ENGINE_MAX_DEVICES && n < n_bytes; i++)
        if (mask >> i & 1)
            n += (size_t)snprintf(text + n, n_bytes - n, "%s%u", n > 0 ? "," : "", i);
}

/* What `auto` has left to the worker. */
static bool is_left_open(const struct setting *s, const void *at)
{
    switch (s->kind) {
    case SETTING_IS_SIZE: return *(const uint64_t *)at == OPTIONS_AUTO;
    case SETTING_IS_NUMBER: return s->word && *(const uint32_t *)at == 0;
    case SETTING_IS_DEVICES: return *(const uint32_t *)at == OPTIONS_ALL_DEVICES;
    case SETTING_IS_TEXT:
    case SETTING_IS_LEVEL: return *(const char *)at == '\0';
    default: return false;
    }
}

void setting_format(const struct setting *s, const struct options *o, char *text, size_t n_bytes)
{
    const void *at = field(s, o);
    uint64_t value = s->size == sizeof(uint64_t) ? *(const uint64_t *)at : 0;
    if (is_left_open(s, at)) {
        snprintf(text, n_bytes, "%s", s->word);
        return;
    }
    switch (s->kind) {
    case SETTING_IS_SIZE: units_format_size(value, text, n_bytes); break;
    case SETTING_IS_SECONDS: units_format_seconds(value, text, n_bytes); break;
    case SETTING_IS_NUMBER: snprintf(text, n_bytes, "%u", *(const uint32_t *)at); break;
    case SETTING_IS_MODE: snprintf(text, n_bytes, "%04o", *(const uint32_t *)at); break;
    case SETTING_IS_LOG_LEVEL: snprintf(text, n_bytes, "%s", log_levels[o->log_level]); break;
    case SETTING_IS_ENGINE: snprintf(text, n_bytes, "%s", engine_words[o->engine]); break;
    case SETTING_IS_DEVICES: format_devices(*(const uint32_t *)at, text, n_bytes); break;
    case SETTING_IS_TEXT:
    case SETTING_IS_LEVEL: snprintf(text, n_bytes, "%s", (const char *)at); break;
    }
}

uint64_t setting_number(const struct setting *s, const struct options *o)
{
    const void *at = field(s, o);
    return s->size == sizeof(uint64_t) ? *(const uint64_t *)at : *(const uint32_t *)at;
}

bool setting_is_same(const struct setting *s, const struct options *a, const struct options *b)
{
    return memcmp(field(s, a), field(s, b), s->size) == 0;
}

void setting_copy(enum setting_id id, const struct options *from, struct options *to)
{
    const struct setting *s = setting_at(id);
    memcpy(field(s, to), field(s, from), s->size);
    to->sources[id] = from->sources[id];
}

void settings_set_defaults(struct options *o, bool is_private)
{
    char unused[SETTING_VALUE_SIZE];
    for (unsigned i = 0; i < SETTING_COUNT; i++) {
        bool is_good = setting_parse(&settings_table[i], settings_table[i].by_default, o, unused,
                                     sizeof(unused));
        assert(is_good);
        (void)is_good;
        o->sources[i] = (struct setting_source){.origin = SETTING_DEFAULT};
    }
    o->admin_gid = (gid_t)-1;
    if (is_private)
        o->socket_mode = 0600;
}

/* The file ------------------------------------------------------------------------------------ */

#define COLUMNS 90

/* "# " and text, broken between words. */
static void print_wrapped(FILE *out, const char *text)
{
    size_t column = 0;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column > 0 && column + 1 + n > COLUMNS) {
            fputc('\n', out);
            column = 0;
        }
        column += (size_t)fprintf(out, "%s%.*s", column == 0 ? "# " : " ", (int)n, text);
        text += n + strspn(text + n, " ");
    }
    fputc('\n', out);
}

static void print_setting(FILE *out, const struct setting *s)
{
    char text[1024], unit[160];
    say_expected(s, unit, sizeof(unit));
    snprintf(text, sizeof(text), "%s: %s. %s", s->name, s->doc, s->why);
    fputc('\n', out);
    print_wrapped(out, text);
    snprintf(text, sizeof(text), "Unit: %s. Applied %s.", unit, setting_when(s));
    print_wrapped(out, text);
    fprintf(out, "#%s = %s\n", s->name, s->by_default);
}

void settings_print(FILE *out)
{
    fputs(
        "# Settings of gpuarrayd(8), described in gpuarrayd.conf(5). What is commented out is the\n"
        "# default. `gpuarrayd --check-config` says what is wrong with this file; `systemctl "
        "reload\n"
        "# gpuarrayd`, or SIGHUP, applies it, and a file with a mistake changes nothing.\n"
        "# K, M, G and T are powers of 1024. A comment has a line of its own.\n",
        out);
    for (unsigned i = 0; i < ARRAY_LENGTH(sections); i++) {
        fputc('\n', out);
        print_wrapped(out, sections[i].doc);
        fprintf(out, "[%s]\n", sections[i].name);
        for (unsigned j = 0; j < SETTING_COUNT; j++)
            if (strcmp(settings_table[j].section, sections[i].name) == 0)
                print_setting(out, &settings_table[j]);
    }
}
