/* doctor: how long a detached job may live after the login.
 *
 * Without a service manager of the user's there is nothing that ends processes with the login. With
 * one, jobs of `submit` live in it: to the user's last login, and beyond where lingering is on.
 * Called by doctor.c.
 */
#include "client/ctl/doctor.h"

#include "client/ctl/agent.h"

#include <pwd.h>
#include <unistd.h>

void doctor_login(struct doctor *d)
{
    char path[160], advice[160];
    const struct passwd *user = getpwuid(geteuid());
    if (!scope_is_reachable() || !user) {
        doctor_say(d, FINDING_OK, NULL,
                   "no service manager of yours: detached jobs outlive the "
                   "login unless the system ends all of its processes");
        return;
    }
    snprintf(path, sizeof(path), "/var/lib/systemd/linger/%.64s", user->pw_name);
    if (access(path, F_OK) == 0) {
        doctor_say(d, FINDING_OK, NULL, "lingering is on: detached jobs outlive the login");
        return;
    }
    snprintf(advice, sizeof(advice), "loginctl enable-linger %.64s, for jobs that outlive it",
             user->pw_name);
    doctor_say(d, FINDING_NOTE, advice, "detached jobs end with your last login on this machine");
}
