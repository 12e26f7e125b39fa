/* The configuration file, parsed by libinih.
 *
 *     config_load --> bytes --> config_parse --> ini_parse_stream --> on_value
 *                                    read_line ---^   (one line at a time)
 *
 * inih takes lines from a function of ours. So the number of the line that it is at is known
 * whichever way the library was built, and what it would pass over in silence is seen before it:
 * lines that are too long or hold a byte of 0, an unknown or unclosed section, a line that brings
 * no value. Leading blanks are cut off, so that no line continues the one before.
 *
 * Every mistake is told, with its line, what was expected and what was found; one that follows from
 * another (a key in an unknown section) is not.
 *
 * The file is regular, at most CONFIG_MAX_BYTES, and read at once; opening never waits for a pipe's
 * other end. Called by options.c and reload.c (there in a thread of its own: a disk can be slow).
 */
#include "daemon/broker/config/config.h"
#include "daemon/broker/config/policy.h"
#include "proto/text.h"
#include "proto/util.h"

#include <ctype.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define SHOWN_CHARS     40

struct reader {
    const char *at, *end;
    unsigned line;
    bool wants_value;         /* the line last given to inih must bring one */
    bool is_unknown_section;  /* told already */
    struct policy_rule *rule; /* of a section of a user or group; NULL: another section */
    struct options *options;
    struct config_faults *faults;
};

void config_fault(struct config_faults *faults, unsigned line, const char *format, ...)
{
    va_list ap;
    if (faults->n++ >= CONFIG_MAX_FAULTS)
        return;
    unsigned place = faults->n_kept++;
    for (; place > 0 && faults->kept[place - 1].line > line; place--)
        faults->kept[place] = faults->kept[place - 1];
    struct config_fault *fault = &faults->kept[place];
    fault->line = line;
    va_start(ap, format);
    vsnprintf(fault->text, sizeof(fault->text), format, ap);
    va_end(ap);
    text_make_printable(fault->text);
}

void config_fault_format(const struct options *o, const struct config_faults *faults, unsigned i,
                         char *text, size_t n_bytes)
{
    const struct config_fault *fault = &faults->kept[i];
    if (fault->line > 0)
        snprintf(text, n_bytes, "%s:%u: %s", o->config_path, fault->line, fault->text);
    else
        snprintf(text, n_bytes, "%s", fault->text);
}

/* Lines --------------------------------------------------------------------------------------- */

static void expect_value(struct reader *r)
{
    if (r->wants_value)
        config_fault(r->faults, r->line, "expected NAME = VALUE, [SECTION] or a comment");
    r->wants_value = false;
}

static void check_section(struct reader *r, const char *text, size_t n)
{
    char name[2 * SETTING_WORD_SIZE];
    const char *close = memchr(text, ']', n);
    r->is_unknown_section = true;
    r->rule = NULL;
    if (!close) {
        config_fault(r->faults, r->line, "expected ']' after the section's name, found '%.*s'",
                     (int)min_u64(n, SHOWN_CHARS), text);
        return;
    }
    const char *rest = close + 1, *end = text + n;
    while (rest < end && isspace((unsigned char)*rest))
        rest++;
    if (rest < end && *rest != ';') {
        config_fault(r->faults, r->line, "expected nothing after ']', found '%.*s'",
                     (int)min_u64((size_t)(end - rest), SHOWN_CHARS), rest);
        return;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(close - text - 1), text + 1);
    if (policy_is_section(name)) {
        r->rule = policy_add(&r->options->policy, name, r->line, r->faults);
        r->is_unknown_section = !r->rule;
        return;
    }
    r->is_unknown_section = !setting_is_section(name);
    if (!r->is_unknown_section)
        return;
    const char *nearest = setting_suggest_section(name);
    config_fault(r->faults, r->line, "unknown section [%s]%s%s%s", name,
                 nearest ? "; did you mean [" : "", nearest ? nearest : "", nearest ? "]?" : "");
}

/* What inih may see of the line; the rest is told. */
static bool is_presentable(struct reader *r, const char *text, size_t n, size_t max)
{
    if (memchr(text, '\0', n)) {
        config_fault(r->faults, r->line, "expected text, found a byte of 0");
        return false;
    }
    if (n > max) {
        config_fault(r->faults, r->line, "expected a line of at most %zu bytes, found %zu", max, n);
        return false;
    }
    if (n > 0 && text[0] == '[') {
        check_section(r, text, n);
        return !r->is_unknown_section;
    }
    return true;
}

static bool is_comment(const char *text, size_t n)
{
    return n == 0 || text[0] == '#' || text[0] == ';';
}

/* inih's fgets(). */
static char *read_line(char *str, int num, void *stream)
{
    struct reader *r = stream;
    expect_value(r);
    if (r->at == r->end || num < 3)
        return NULL;
    const char *text = r->at;
    const char *newline = memchr(text, '\n', (size_t)(r->end - text));
    r->at = newline ? newline + 1 : r->end;
    r->line++;
    size_t n = (size_t)((newline ? newline : r->end) - text);
    while (n > 0 && isspace((unsigned char)text[0]))
        text++, n--;
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        n--;
    if (!is_presentable(r, text, n, (size_t)num - 2) || is_comment(text, n))
        n = 0;
    r->wants_value = n > 0 && text[0] != '[';
    memcpy(str, text, n);
    memcpy(str + n, "\n", 2);
    return str;
}

/* Values -------------------------------------------------------------------------------------- */

static void fault_unknown(struct reader *r, const char *section, const char *name)
{
    const char *nearest = setting_suggest(name);
    enum setting_id id = setting_find(name);
    if (id < SETTING_COUNT)
        config_fault(r->faults, r->line, "%s: expected in [%s], found %s%s%s", name,
                     setting_at(id)->section, section[0] ? "in [" : "before any section", section,
                     section[0] ? "]" : "");
    else if (nearest)
        config_fault(r->faults, r->line, "%s: unknown setting; did you mean '%s' (in [%s])?", name,
                     nearest, setting_at(setting_find(nearest))->section);
    else
        config_fault(r->faults, r->line, "%s: unknown setting", name);
}

static void set(struct reader *r, enum setting_id id, const char *value)
{
    char expected[160];
    struct options *o = r->options;
    const struct setting *setting = setting_at(id);
    struct setting_source *source = &o->sources[id];
    struct options overruled;
    bool is_overruled = source->origin == SETTING_OF_COMMAND_LINE;
    if (source->line > 0)
        config_fault(r->faults, r->line, "%s: expected once, found again after line %u",
                     setting->name, source->line);
    else if (!setting_parse(setting, value, is_overruled ? &overruled : o, expected,
                            sizeof(expected)))
        config_fault(r->faults, r->line, "%s: expected %s; found '%.*s'", setting->name, expected,
                     SHOWN_CHARS, value);
    else if (!is_overruled)
        source->origin = SETTING_OF_FILE;
    source->line = r->line;
}

static int on_value(void *userdata, const char *section, const char *name, const char *value)
{
    struct reader *r = userdata;
    r->wants_value = false;
    if (r->is_unknown_section)
        return 1;
    if (r->rule) {
        policy_set(r->rule, name, value, r->line, r->faults);
        return 1;
    }
    enum setting_id id = setting_find(name);
    if (id == SETTING_COUNT || strcmp(setting_at(id)->section, section) != 0)
        fault_unknown(r, section, name);
    else
        set(r, id, value);
    return 1;
}

void config_parse(const char *bytes, size_t n_bytes, struct options *o,
                  struct config_faults *faults)
{
    struct reader r = {.at = bytes, .end = bytes + n_bytes, .options = o, .faults = faults};
    size_t n_mark = strlen(BYTE_ORDER_MARK);
    if (n_bytes >= n_mark && memcmp(bytes, BYTE_ORDER_MARK, n_mark) == 0)
        r.at += n_mark;
    for (unsigned i = 0; i < SETTING_COUNT; i++)
        o->sources[i].line = 0;
    o->policy.n_rules = 0;
    int line = ini_parse_stream(read_line, &r, on_value, &r);
    if (line != 0 && faults->n == 0)
        config_fault(faults, line > 0 ? (unsigned)line : 0, "expected NAME = VALUE");
}

/* The file ------------------------------------------------------------------------------------ */

static int read_all(int fd, char *bytes, size_t capacity, size_t *ret_n_bytes)
{
    size_t n = 0;
    while (n < capacity) {
        ssize_t got = read(fd, bytes + n, capacity - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *ret_n_bytes = n;
    return 0;
}

static void load_open(int fd, struct options *o, struct config_faults *faults)
{
    struct stat st;
    size_t n_bytes = 0;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        config_fault(faults, 0, "%s: expected a regular file, found %s", o->config_path,
                     S_ISDIR(st.st_mode) ? "a directory" : "something else");
        return;
    }
    _cleanup_free_ char *bytes = malloc(CONFIG_MAX_BYTES + 1);
    int r = bytes ? read_all(fd, bytes, CONFIG_MAX_BYTES + 1, &n_bytes) : -ENOMEM;
    if (r < 0)
        config_fault(faults, 0, "%s: %s", o->config_path, strerrordesc_np(-r));
    else if (n_bytes > CONFIG_MAX_BYTES)
        config_fault(faults, 0, "%s: expected at most %u bytes, found more", o->config_path,
                     CONFIG_MAX_BYTES);
    else
        config_parse(bytes, n_bytes, o, faults);
}

void config_load(struct options *o, struct config_faults *faults)
{
    if (o->is_without_config)
        return;
    _cleanup_fd_ int fd = open(o->config_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0)
        load_open(fd, o, faults);
    else if (errno != ENOENT || o->has_config)
        config_fault(faults, 0, "%s: %s", o->config_path, strerrordesc_np(errno));
}
