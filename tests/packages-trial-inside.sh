#!/bin/sh
# The part of packages-trial.sh that runs inside the empty root. Never run it anywhere else: it makes users
# and installs below /usr. No systemd runs here, so what it would start and restart is done by hand.
set -eu
. /src/trial.sh
daemon=
trap 'if [ -n "$daemon" ]; then kill "$daemon" 2>/dev/null || true; fi' EXIT
DEBIAN_FRONTEND=noninteractive
export DEBIAN_FRONTEND

apt() { # apt VERB PACKAGE...
    apt-get -y -qq --no-install-recommends "$@" >/tmp/apt.log 2>&1 || {
        tail -n 30 /tmp/apt.log
        return 1
    }
}
start() {
    setpriv --reuid gpuarrayd --regid gpuarrayd --init-groups --no-new-privs --bounding-set -all \
        --inh-caps -all gpuarrayd 2>>/tmp/daemon.log &
    daemon=$!
    i=0
    while [ ! -S /run/gpuarrayd/socket ] && [ $i -lt 100 ]; do
        sleep 0.1
        i=$((i + 1))
    done
}
version_of() { dpkg-query -W -f '${Version}' "$1"; }

say "installed"
apt-get update -qq
check "apt installs them" apt install /src/first/*.deb
first=$(version_of gpuarrayd)
echo "$first"
check "the service has a user and a group" getent passwd gpuarrayd
check "the socket's directory is the service's" \
    test "$(stat -c %U:%G:%a /run/gpuarrayd)" = gpuarrayd:gpuarrayd:755
check "the socket is enabled" test "$(systemctl --root=/ is-enabled gpuarrayd.socket)" = enabled
check "the service waits for it" test "$(systemctl --root=/ is-enabled gpuarrayd.service)" = disabled
check "nobody's own daemon is enabled" \
    test ! -e /etc/systemd/user/sockets.target.wants/gpuarrayd.socket
check "the configuration is right" gpuarrayd --check-config
for user in alice bob carol; do useradd --create-home "$user" && chmod 700 "/home/$user"; done
for user in alice bob; do usermod --append --groups gpuarrayd "$user"; done

say "used"
start
person alice gpuarrayctl ping
check "alice, of the group, reaches the service" test $code = 0
person alice python3 -c 'import gpuarrayd as gd, numpy as np
a = np.arange(1000.0)
np.save("a.npy", a)
gd.save("root.npy", gd.sqrt(gd.open("a.npy")))
assert np.array_equal(np.load("root.npy"), np.sqrt(a))
print(gd.info()["program"])'
check "and computes in Python, by the service" test "$code $said" = "0 /usr/bin/gpuarrayd"
person bob gpuarrayctl run -v 'sum(a)' a=/home/alice/a.npy
check "bob may not read what is hers" says "permission-denied"
person bob gpuarrayctl random normal --shape 100 --seed 1 -o x.npy
check "bob computes too" test $code = 0 -a -s /home/bob/x.npy
person carol gpuarrayctl ping
check "carol, not of the group, is told which group" says "group.*gpuarrayd"
check "the service runs as its user" test "$(stat -c %U "/proc/$daemon")" = gpuarrayd

say "upgraded"
echo "# ours" >>/etc/gpuarrayd/gpuarrayd.conf
cat >/home/alice/work.py <<'PROGRAM'
import os, sys, time
import numpy as np
import gpuarrayd as gd

a = np.arange(1 << 20, dtype="f4")
want, pids, n, end = np.sqrt(a), set(), 0, time.monotonic() + 300
pids.add(gd.info()["pid"])
open("begun", "w").close()
while not os.path.exists("enough") and time.monotonic() < end:
    futures = [gd.submit("sqrt(a)", a=a) for _ in range(4)]
    assert all(np.array_equal(future.result(), want) for future in futures)
    n += len(futures)
pids.add(gd.info()["pid"])
assert np.array_equal(gd.evaluate("sqrt(a)", a=a), want)
print(f"{n} jobs of {len(pids)} daemons, each of them right")
PROGRAM
person_later alice python3 work.py
while [ ! -e /home/alice/begun ]; do sleep 0.1; done
check "dpkg upgrades" apt install /src/second/*.deb
check "to the later version" test "$(version_of python3-gpuarrayd)" = "$first.2"
check "the configuration is kept" grep -q '^# ours$' /etc/gpuarrayd/gpuarrayd.conf
check "the daemon goes on meanwhile" kill -0 "$daemon"
old=$daemon
kill -TERM "$old"
code=0
wait "$old" || code=$?
check "the old daemon leaves cleanly" test $code = 0
start
sleep 1
touch /home/alice/enough
person_ended
check "no job of alice's was lost" test $code = 0
check "and both daemons had some" says "jobs of 2 daemons"

say "removed"
kill -TERM "$daemon"
wait "$daemon" || true
daemon=
packages=$(dpkg-query -W -f '${Package} ' '*gpuarrayd*')
# shellcheck disable=SC2086
check "apt removes them" apt remove $packages
check "the programs are gone" test ! -e /usr/bin/gpuarrayd -a ! -e /usr/libexec/gpuarrayd
check "the configuration is not" test -e /etc/gpuarrayd/gpuarrayd.conf

say "purged"
# shellcheck disable=SC2086
check "dpkg purges them" dpkg --purge $packages
left=$(find / -xdev \( -path /proc -o -path /src -o -path /home -o -path /tmp -o -path /dev \) -prune \
    -o -name '*gpuarray*' -print | grep -v '^/var/log/\|^/var/cache/' || true)
[ -z "$left" ] || echo "$left"
check "nothing is left" test -z "$left" -a ! -e /run/gpuarrayd
check "nor the user and the group" sh -c '! getent passwd gpuarrayd && ! getent group gpuarrayd'
ended
