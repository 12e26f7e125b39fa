#!/bin/sh
# The part of install-trial.sh that runs inside the empty root. Never run it anywhere else: it makes
# users and installs below /usr.
set -eu
cd /src/gpuarrayd
. tests/trial.sh
daemon=
trap 'if [ -n "$daemon" ]; then kill "$daemon" 2>/dev/null || true; fi' EXIT

say "sh tests/quickstart.sh"
sh tests/quickstart.sh
check "the quickstart ends well" true

say "meson install below /usr"
apt-get install -y -qq --no-install-recommends systemd man-db >/tmp/apt.log 2>&1
meson configure build -Dtests=false -Dprefix=/usr
meson install -C build >/tmp/install.log 2>&1 || { tail -n 30 /tmp/install.log; exit 1; }
sed -n 's/^Installing \(.*\) to \(.*\)/\2: \1/p' /tmp/install.log | sed 's|/src/gpuarrayd/||' | sort
ldconfig
check "the units are well formed" systemd-analyze verify --man=no \
    /lib/systemd/system/gpuarrayd.service /lib/systemd/system/gpuarrayd.socket
exposure=$(systemd-analyze security --offline=true --no-pager /lib/systemd/system/gpuarrayd.service |
    sed -n 's/.*Overall exposure level for [^:]*: \([0-9.]*\).*/\1/p')
echo "exposure of the service: $exposure"
check "it is exposed to next to nothing" awk "BEGIN { exit !(\"$exposure\" != \"\" && $exposure + 0 <= 1.0) }"
check "pkg-config knows the library" pkg-config --exists gpuarrayd
check "the configuration is in its place, and right" gpuarrayd --check-config
for page in gpuarrayctl libgpuarrayd gpuarrayd gpuarrayd.conf; do
    check "there is a man page $page" sh -c 'man -w "$1" >/dev/null' man "$page"
done

say "the service's user and directory"
systemd-sysusers gpuarrayd.conf
systemd-tmpfiles --create gpuarrayd.conf
check "the directory is the service's" test "$(stat -c %U:%G:%a /run/gpuarrayd)" = gpuarrayd:gpuarrayd:755
for user in alice bob carol; do useradd --create-home "$user"; done
for user in alice bob; do usermod --append --groups gpuarrayd "$user"; done
winds=$(dpkg -L ferret-datasets | grep '/monthly_navy_winds\.cdf$')
for user in alice bob carol; do
    cp "$winds" "/home/$user/winds.nc"
    chown "$user:" "/home/$user/winds.nc"
    chmod 600 "/home/$user/winds.nc"
    chmod 700 "/home/$user"
done

say "the daemon as its own user"
setpriv --reuid gpuarrayd --regid gpuarrayd --init-groups --no-new-privs --bounding-set -all \
    --inh-caps -all gpuarrayd &
daemon=$!
i=0
while [ ! -S /run/gpuarrayd/socket ] && [ $i -lt 100 ]; do
    sleep 0.1
    i=$((i + 1))
done
check "the socket is the group's" \
    test "$(stat -c %U:%G:%a /run/gpuarrayd/socket)" = gpuarrayd:gpuarrayd:660

say "people"
person alice gpuarrayctl ping
check "alice, of the group, reaches the service" test $code = 0
person alice gpuarrayctl run 'sqrt(u*u + v*v)' u=winds.nc:/UWND v=winds.nc:/VWND -o speed.npy
check "a file that only alice can read is served" test $code = 0 -a -s /home/alice/speed.npy
check "her result is hers" test "$(stat -c %U /home/alice/speed.npy)" = alice
person alice gpuarrayctl run -v 'mean(s)' s=speed.npy
check "and a result in the answer" test $code = 0
person alice gpuarrayctl stats
check "the daemon read and wrote the files itself" sh -c \
    'printf "%s" "$1" | grep -q "^provider  *0 B  *0 B$"' stats "$said"
person alice gpuarrayctl submit 'exp(s)' s=speed.npy -o e.npy
job=$(printf '%s\n' "$said" | grep -o '[0-9][0-9]*' | head -n 1)
check "alice submits" test $code = 0
person alice gpuarrayctl wait "$job"
check "and waits" test $code = 0
person alice gpuarrayctl jobs
check "alice sees her job" says "\\b$job\\b"
person alice sh -c 'cc -o windspeed /usr/share/doc/gpuarrayd/examples/windspeed.c \
    $(pkg-config --cflags --libs gpuarrayd) && ./windspeed winds.nc /UWND /VWND again.npy'
check "her own program computes the same" cmp /home/alice/speed.npy /home/alice/again.npy
person alice sh -c 'site=$(python3 -m site --user-site) &&
    meson setup python /src/gpuarrayd/client/python -Dpython.platlibdir="$site" \
        -Dpython.purelibdir="$site" && meson install -C python'
check "alice installs the Python package, with the distribution's programs alone" test $code = 0
person alice python3 -c 'import gpuarrayd as gd, numpy as np
u, v = gd.open("winds.nc:/UWND"), gd.open("winds.nc:/VWND")
assert np.array_equal(gd.evaluate("sqrt(u*u + v*v)"), np.load("speed.npy"))
print("every element is equal; the service is", gd.info()["version"])'
check "and computes the same in Python" test $code = 0
person bob gpuarrayctl jobs --json
check "bob sees no job of hers" test "$(printf '%s' "$said" | tr -d ' \n')" = '[]'
person bob gpuarrayctl status "$job"
check "nor by its number" says "unknown-job"
person bob gpuarrayctl cancel "$job"
check "and cannot end it" test $code = 1
person bob gpuarrayctl run 'max(u)' u=winds.nc:/UWND
check "bob computes too" test $code = 0
person bob gpuarrayctl show /home/alice/speed.npy
check "but not on alice's files" says "permission-denied"
person carol gpuarrayctl ping
check "carol, not of the group, is told which group" says "group.*gpuarrayd"
check "and fails" test $code != 0
person carol gpuarrayctl doctor
check "the doctor says what to do" says "gpuarrayd"
person carol sh -c 'kill '"$daemon"
check "nobody else ends the daemon" test $code != 0

say "the end"
kill -TERM "$daemon"
code=0
wait "$daemon" || code=$?
daemon=
check "the daemon leaves cleanly" test $code = 0
check "and takes its socket with it" test ! -e /run/gpuarrayd/socket
ninja -C build uninstall >/tmp/uninstall.log 2>&1
left=$(find /usr /lib /etc -path /usr/share/doc -prune -o -name '*gpuarray*' -print |
    grep -v '^/etc/gpuarrayd' || true)
[ -z "$left" ] || echo "$left"
check "uninstallation leaves the configuration and nothing else" \
    test -z "$left" -a -f /etc/gpuarrayd/gpuarrayd.conf

ended
