/* Any bytes as the configuration file.
 *
 * Checked: every mistake has a line of the text and a message that can be shown; what is taken is
 * within its bounds, for it is written and read back the same; and the same bytes are judged the
 * same again. Reloading relies on all of it.
 */
#include "daemon/broker/config/config.h"
#include "proto/text.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

static struct config_faults faults, again;

static void check_faults(size_t n_bytes)
{
    assert(faults.n_kept == (faults.n < CONFIG_MAX_FAULTS ? faults.n : CONFIG_MAX_FAULTS));
    for (unsigned i = 0; i < faults.n_kept; i++) {
        const struct config_fault *fault = &faults.kept[i];
        assert(fault->line >= 1 && fault->line <= n_bytes + 1);
        assert(i == 0 || faults.kept[i - 1].line <= fault->line);
        assert(fault->text[0] && text_is_printable(fault->text, strlen(fault->text)));
    }
}

static void check_values(const struct options *o)
{
    char text[SETTING_VALUE_SIZE], expected[160];
    struct options copy = *o;
    for (unsigned i = 0; i < SETTING_COUNT; i++) {
        const struct setting *setting = setting_at((enum setting_id)i);
        setting_format(setting, o, text, sizeof(text));
        bool is_good = setting_parse(setting, text, &copy, expected, sizeof(expected));
        assert(is_good && setting_is_same(setting, o, &copy));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct options o = {0}, same = {0};
    memset(&faults, 0, sizeof(faults));
    memset(&again, 0, sizeof(again));
    settings_set_defaults(&o, false);
    settings_set_defaults(&same, false);
    config_parse((const char *)data, n_bytes, &o, &faults);
    config_parse((const char *)data, n_bytes, &same, &again);
    check_faults(n_bytes);
    check_values(&o);
    assert(faults.n == again.n && memcmp(&o, &same, sizeof(o)) == 0);
    return 0;
}
