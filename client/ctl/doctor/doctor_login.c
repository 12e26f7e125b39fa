/* doctor: how long a detached job may live after the login.
 *
 * Agents of `submit` are in sessions of their own, which systemd-logind ends with the login only
 * where it was told to (KillUserProcesses=yes; Debian and Ubuntu do not). Where lingering is on
 * they live in a scope of the user's service manager, which stays in any case. Called by doctor.c.
 */
#include "client/ctl/doctor/doctor.h"

#include "client/ctl/agent/agent.h"

#include <pwd.h>
#include <unistd.h>

void doctor_login(struct doctor *d)
{
    char advice[160];
    const struct passwd *user = getpwuid(geteuid());
    if (access("/run/systemd/seats", F_OK) || !user) {
        doctor_say(d, FINDING_OK, NULL, "no systemd-logind: detached jobs outlive the login");
        return;
    }
    if (agent_scope_is_reachable()) {
        doctor_say(d, FINDING_OK, NULL, "lingering is on: detached jobs outlive the login");
        return;
    }
    snprintf(advice, sizeof(advice), "loginctl enable-linger %.64s, so that they do in any case",
             user->pw_name);
    doctor_say(d, FINDING_NOTE, advice,
               "detached jobs outlive the login unless logind.conf says KillUserProcesses=yes");
}
