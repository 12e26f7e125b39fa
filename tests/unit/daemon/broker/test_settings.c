/* The table of settings, and that everything written about them says the same. */
#include "daemon/broker/config/config.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_text(const char *name)
{
    char path[512], *text = calloc(1, 1 << 17);
    snprintf(path, sizeof(path), GAD_TOP "/%s", name);
    FILE *file = fopen(path, "r");
    cr_assert(ne(ptr, file, NULL), "%s", path);
    cr_assert(lt(sz, 0, fread(text, 1, (1 << 17) - 1, file)));
    fclose(file);
    return text;
}

static char *printed(void)
{
    char *text;
    size_t n_bytes;
    FILE *out = open_memstream(&text, &n_bytes);
    settings_print(out);
    fclose(out);
    return text;
}

/* Every setting of the printed file, in force. */
static char *uncommented(void)
{
    char *text = printed();
    for (char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (line[0] == '#' && islower((unsigned char)line[1]))
            memmove(line, line + 1, strlen(line));
    return text;
}

static void parse(const char *text, struct options *o)
{
    struct config_faults *faults = calloc(1, sizeof(*faults));
    settings_set_defaults(o, false);
    config_parse(text, strlen(text), o, faults);
    cr_assert(eq(uint, faults->n, 0), "%s", faults->kept[0].text);
    free(faults);
}

Test(settings, names_are_unique_and_sections_known)
{
    for (unsigned i = 0; i < SETTING_COUNT; i++) {
        const struct setting *setting = setting_at((enum setting_id)i);
        cr_assert(ne(ptr, (void *)setting->name, NULL), "%u", i);
        cr_assert(eq(uint, setting_find(setting->name), i));
        cr_assert(setting_is_section(setting->section), "%s", setting->name);
        cr_assert(lt(sz, 10, strlen(setting->doc)), "%s", setting->name);
        cr_assert(lt(sz, 10, strlen(setting->why)), "%s", setting->name);
    }
}

Test(settings, a_value_is_written_as_it_can_be_read)
{
    struct options o, again;
    char text[SETTING_VALUE_SIZE], expected[160];

    settings_set_defaults(&o, false);
    settings_set_defaults(&again, false);
    for (unsigned i = 0; i < SETTING_COUNT; i++) {
        const struct setting *setting = setting_at((enum setting_id)i);
        setting_format(setting, &o, text, sizeof(text));
        cr_assert(setting_parse(setting, text, &again, expected, sizeof(expected)), "%s = %s",
                  setting->name, text);
        cr_assert(setting_is_same(setting, &o, &again), "%s = %s", setting->name, text);
    }
}

Test(settings, bounds_hold_and_one_beyond_is_refused)
{
    struct options o;
    char expected[160];
    const struct setting *pool = setting_at(SETTING_POOL), *mode = setting_at(SETTING_SOCKET_MODE);
    const struct setting *jobs = setting_at(SETTING_USER_JOBS);

    settings_set_defaults(&o, false);
    cr_assert(setting_parse(pool, "64K", &o, expected, sizeof(expected)));
    cr_assert(not(setting_parse(pool, "65535", &o, expected, sizeof(expected))));
    cr_assert(eq(u64, o.pool_bytes, 65536));
    cr_assert(ne(ptr, strstr(expected, "from 64K to 1T"), NULL));
    cr_assert(setting_parse(mode, "0777", &o, expected, sizeof(expected)));
    cr_assert(not(setting_parse(mode, "1777", &o, expected, sizeof(expected))));
    cr_assert(not(setting_parse(mode, "8", &o, expected, sizeof(expected))));
    cr_assert(setting_parse(jobs, "1048576", &o, expected, sizeof(expected)));
    cr_assert(not(setting_parse(jobs, "1048577", &o, expected, sizeof(expected))));
    cr_assert(not(setting_parse(jobs, "18446744073709551617", &o, expected, sizeof(expected))));
    cr_assert(eq(uint, o.user_jobs, 1048576));
}

Test(settings, a_share_is_of_the_machines_memory_and_not_of_a_devices)
{
    struct options o;
    char expected[160];
    settings_set_defaults(&o, false);
    cr_assert(
        setting_parse(setting_at(SETTING_PINNED_BYTES), "1%", &o, expected, sizeof(expected)));
    cr_assert(
        not(setting_parse(setting_at(SETTING_DEVICE_BYTES), "1%", &o, expected, sizeof(expected))));
    cr_assert(eq(str, expected, "bytes, with K, M, G or T, from 12M to 1T, or auto"));
    cr_assert(
        not(setting_parse(setting_at(SETTING_CHUNK_BYTES), "1%", &o, expected, sizeof(expected))));
}

Test(settings, words_stand_for_values)
{
    struct options o;
    char expected[160], text[SETTING_VALUE_SIZE];

    settings_set_defaults(&o, false);
    cr_assert(ge(uint, o.n_threads, 1));
    cr_assert(eq(str, o.level, ""));
    cr_assert(eq(str, o.group, ""));
    cr_assert(setting_parse(setting_at(SETTING_LEVEL), "avx2", &o, expected, sizeof(expected)));
    cr_assert(not(setting_parse(setting_at(SETTING_LEVEL), "mmx", &o, expected, sizeof(expected))));
    cr_assert(eq(str, o.level, "avx2"));
    cr_assert(setting_parse(setting_at(SETTING_LEVEL), "auto", &o, expected, sizeof(expected)));
    setting_format(setting_at(SETTING_LEVEL), &o, text, sizeof(text));
    cr_assert(eq(str, text, "auto"));
    cr_assert(not(setting_parse(setting_at(SETTING_POOL), "auto", &o, expected, sizeof(expected))));
}

Test(settings, auto_leaves_a_size_to_the_worker)
{
    static const enum setting_id ids[] = {SETTING_DEVICE_BYTES, SETTING_PINNED_BYTES,
                                          SETTING_CHUNK_BYTES, SETTING_REGISTER_BYTES};
    struct options o;
    char expected[160], text[SETTING_VALUE_SIZE];

    settings_set_defaults(&o, false);
    cr_assert(eq(u64, o.device_bytes, OPTIONS_AUTO));
    cr_assert(eq(uint, o.device_depth, 0));
    for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        const struct setting *s = setting_at(ids[i]);
        cr_assert(setting_parse(s, "16M", &o, expected, sizeof(expected)), "%s", s->name);
        setting_format(s, &o, text, sizeof(text));
        cr_assert(eq(str, text, "16M"));
        cr_assert(setting_parse(s, "auto", &o, expected, sizeof(expected)), "%s", s->name);
        setting_format(s, &o, text, sizeof(text));
        cr_assert(eq(str, text, "auto"));
    }
    cr_assert(setting_parse(setting_at(SETTING_REGISTER_BYTES), "0", &o, expected, 160));
    cr_assert(eq(u64, o.register_bytes, 0));
    cr_assert(not(setting_parse(setting_at(SETTING_DEVICE_DEPTH), "2", &o, expected, 160)));
}

Test(settings, an_engine_and_its_devices_are_named)
{
    static const char *const wrong[] = {"", ",", "0,", "0,0", "16", "a", "0 2", "-1", "0,2,"};
    const struct setting *devices = setting_at(SETTING_DEVICES);
    struct options o;
    char expected[160], text[SETTING_VALUE_SIZE];

    settings_set_defaults(&o, false);
    cr_assert(eq(int, o.engine, ENGINE_AUTO));
    cr_assert(settings_have_device(&o, 15));
    cr_assert(setting_parse(setting_at(SETTING_ENGINE), "cuda", &o, expected, sizeof(expected)));
    cr_assert(eq(int, o.engine, ENGINE_CUDA));
    cr_assert(not(setting_parse(setting_at(SETTING_ENGINE), "gpu", &o, expected, 160)));
    cr_assert(eq(str, expected, "auto, cpu or cuda"));
    cr_assert(setting_parse(devices, "2,0,15", &o, expected, sizeof(expected)));
    cr_assert(settings_have_device(&o, 0) && settings_have_device(&o, 2) &&
              !settings_have_device(&o, 1));
    setting_format(devices, &o, text, sizeof(text));
    cr_assert(eq(str, text, "0,2,15"));
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        cr_assert(not(setting_parse(devices, wrong[i], &o, expected, 160)), "%s", wrong[i]);
    cr_assert(setting_parse(devices, "all", &o, expected, sizeof(expected)));
    cr_assert(eq(u32, o.device_mask, OPTIONS_ALL_DEVICES));
    cr_assert(not(settings_have_device(&o, 16)));
}

Test(settings, texts_that_do_not_fit_are_refused)
{
    struct options o;
    char expected[160], text[SETTING_SOCKET_SIZE + 1];

    settings_set_defaults(&o, false);
    memset(text, 'x', sizeof(text) - 1);
    text[SETTING_SOCKET_SIZE] = '\0';
    cr_assert(not(setting_parse(setting_at(SETTING_SOCKET), text, &o, expected, sizeof(expected))));
    text[SETTING_SOCKET_SIZE - 1] = '\0';
    cr_assert(setting_parse(setting_at(SETTING_SOCKET), text, &o, expected, sizeof(expected)));
    cr_assert(not(setting_parse(setting_at(SETTING_SOCKET), "", &o, expected, sizeof(expected))));
}

Test(settings, the_nearest_name_is_found)
{
    cr_assert(eq(str, (char *)setting_suggest("max-que"), "max-queue"));
    cr_assert(eq(str, (char *)setting_suggest("hangtimeout"), "hang-timeout"));
    cr_assert(eq(ptr, (void *)setting_suggest("colour-of-the-log"), NULL));
    cr_assert(eq(ptr, (void *)setting_suggest("a-name-that-is-longer-than-all-others-are"), NULL));
    cr_assert(eq(str, (char *)setting_suggest_section("user"), "users"));
}

Test(settings, the_shipped_file_is_what_the_table_prints)
{
    char *file = read_text("systemd/gpuarrayd.conf"), *table = printed();

    cr_assert(eq(str, file, table));
    free(file);
    free(table);
}

Test(settings, the_shipped_file_changes_nothing)
{
    struct options o, defaults;
    char *text = read_text("systemd/gpuarrayd.conf");

    settings_set_defaults(&defaults, false);
    parse(text, &o);
    for (unsigned i = 0; i < SETTING_COUNT; i++)
        cr_assert(eq(int, o.sources[i].origin, SETTING_DEFAULT));
    cr_assert(eq(int, memcmp(&o.pool_bytes, &defaults.pool_bytes, sizeof(o.pool_bytes)), 0));
    free(text);
}

Test(settings, what_the_shipped_file_comments_out_are_the_defaults)
{
    struct options o, defaults;
    char *text = uncommented();

    settings_set_defaults(&defaults, false);
    parse(text, &o);
    for (unsigned i = 0; i < SETTING_COUNT; i++) {
        const struct setting *setting = setting_at((enum setting_id)i);
        cr_assert(eq(int, o.sources[i].origin, SETTING_OF_FILE), "%s", setting->name);
        cr_assert(setting_is_same(setting, &o, &defaults), "%s", setting->name);
    }
    free(text);
}

/* The item of a setting in the manual page as one line, without its first letter (which is a
 * capital there). */
static void item_of(const char *page, const char *name, char *item, size_t n_bytes)
{
    char head[64];
    size_t n = 0;
    snprintf(head, sizeof(head), "\n.It Cm %s\n", name);
    const char *at = strstr(page, head);
    cr_assert(ne(ptr, (void *)at, NULL), "%s is not in the manual page", name);
    at += strlen(head) + 1;
    const char *end = strstr(at, "\n.It "), *close = strstr(at, "\n.El");
    end = !end || (close && close < end) ? close : end;
    for (; at < end && n + 1 < n_bytes; at++)
        item[n++] = *at == '\n' ? ' ' : *at;
    item[n] = '\0';
}

Test(settings, the_manual_page_says_what_the_table_says)
{
    char *page = read_text("daemon/man/gpuarrayd.conf.5"), item[2048], text[256];
    unsigned n_items = 0;

    for (unsigned i = 0; i < SETTING_COUNT; i++) {
        const struct setting *setting = setting_at((enum setting_id)i);
        item_of(page, setting->name, item, sizeof(item));
        cr_assert(eq(int, strncmp(item, setting->doc + 1, strlen(setting->doc) - 1), 0), "%s: %s",
                  setting->name, item);
        cr_assert(ne(ptr, strstr(item, setting->why), NULL), "%s: %s", setting->name, item);
        snprintf(text, sizeof(text), "Applied %s. Default: %s.", setting_when(setting),
                 setting->by_default);
        cr_assert(ne(ptr, strstr(item, text), NULL), "%s: %s", setting->name, item);
        cr_assert(ne(ptr, strstr(item, setting_kind_name(setting)), NULL), "%s", setting->name);
    }
    const char *settings = strstr(page, "\n.Sh SETTINGS"), *end = strstr(page, "\n.Sh FILES");
    for (const char *at = settings; (at = strstr(at + 1, "\n.It Cm ")) && at < end;)
        n_items++;
    cr_assert(eq(uint, n_items, SETTING_COUNT));
    free(page);
}
