/* Every error says what to try. */
#include "client/ctl/ctl.h"

#include "proto/wire/message.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char hint[CTL_HINT_SIZE];

static const char *hint_of(enum gad_status status, const char *argument, const char *expected,
                           const char *found)
{
    struct gad_error error;
    error_set(&error, status, argument, "%s", "a message");
    error_expected(&error, "%s", expected);
    error_found(&error, "%s", found);
    ctl_hint(&error, hint, sizeof(hint));
    return hint;
}

Test(hints, there_is_one_for_every_status)
{
    for (int status = GAD_OK + 1; status < GAD_STATUS_COUNT; status++) {
        const char *text = hint_of((enum gad_status)status, "", "", "");
        cr_assert(strlen(text) > 5, "%s: '%s'", gad_status_word(status), text);
        cr_assert(strlen(text) < CTL_HINT_SIZE - 1, "%s: '%s'", gad_status_word(status), text);
    }
    cr_assert(eq(str, (char *)hint_of(GAD_OK, "", "", ""), ""));
}

Test(hints, a_call_that_is_wrong_is_explained_by_its_own_verb)
{
    cr_assert(eq(str, (char *)hint_of(GAD_BAD_ARGUMENT, "", "", ""),
                 "the examples of 'gpuarrayctl run --help'"));
    ctl_hint_verb("tile");
    cr_assert(eq(str, (char *)hint_of(GAD_BAD_ARGUMENT, "", "", ""),
                 "the examples of 'gpuarrayctl tile --help'"));
}

Test(hints, the_older_side_is_to_be_upgraded_whoever_complains)
{
    char ours[16], newer[16], older[16];
    snprintf(ours, sizeof(ours), "%u", PROTOCOL_VERSION);
    snprintf(newer, sizeof(newer), "%u", PROTOCOL_VERSION + 1);
    snprintf(older, sizeof(older), "%u", PROTOCOL_VERSION - 1);
    cr_assert(strstr(hint_of(GAD_VERSION, "version", newer, ours), "upgrade gpuarrayctl") != NULL);
    cr_assert(strstr(hint_of(GAD_VERSION, "version", ours, newer), "upgrade gpuarrayctl") != NULL);
    cr_assert(strstr(hint_of(GAD_VERSION, "version", older, ours), "upgrade gpuarrayd") != NULL);
    cr_assert(strstr(hint_of(GAD_VERSION, "version", ours, older), "upgrade gpuarrayd") != NULL);
}

Test(hints, a_refused_socket_is_not_taken_for_a_refused_file)
{
    char folder[] = "/tmp/gad-hints.XXXXXX", path[64];
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/socket", folder);
    setenv("GPUARRAYD_SOCKET", path, 1);
    cr_assert(strstr(hint_of(GAD_PERMISSION, path, "", ""), "for the group") != NULL);
    cr_assert(strstr(hint_of(GAD_PERMISSION, "/data/a.npy", "", ""), "ls -l") != NULL);
    rmdir(folder);
    cr_assert(strstr(hint_of(GAD_PERMISSION, path, "", ""), "owns the folder") != NULL);
}

Test(hints, no_daemon_depends_on_where_it_was_looked_for)
{
    setenv("GPUARRAYD_SOCKET", "/run/somewhere/socket", 1);
    cr_assert(strstr(hint_of(GAD_NO_DAEMON, "/run/somewhere/socket", "", ""), "unset it") != NULL);
    unsetenv("GPUARRAYD_SOCKET");
    cr_assert(strstr(hint_of(GAD_NO_DAEMON, "/tmp/own/socket", "", ""), "daemon start") != NULL);
    cr_assert(strstr(hint_of(GAD_NO_DAEMON, "gpuarrayd", "", ""), "install gpuarrayd") != NULL);
}
