#!/bin/sh
# install-trial.sh [--keep] [SUITE [MIRROR]]
# The whole life of an installation in an empty Debian root: debootstrap, a copy of this tree, the
# quickstart, 'meson install', the service's user and directory, the daemon as that user, three
# people who use it, uninstallation. Prints what it does and ends with `N passed, N failed`.
#
# Run by hand, as root: it needs the network, 3 GB below $TMPDIR and some ten minutes, so it is no
# part of check.sh. SUITE is bookworm unless given; --keep leaves the root behind. Mounts and
# processes are in name spaces of their own and end with it.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
keep=
if [ "${1:-}" = --keep ]; then
    keep=yes
    shift
fi
suite=${1:-bookworm}
say() { printf '\n== %s\n' "$*"; }

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "install-trial.sh: needs root and debootstrap" >&2
    exit 2
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/gpuarrayd-trial.XXXXXX")
root=$work/root
finish() {
    if [ -n "$keep" ]; then echo "the root is $root"; else rm -rf --one-file-system "$work"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM

say "an empty $suite"
debootstrap --variant=minbase "$suite" "$root" ${2:+"$2"} >"$work/debootstrap.log" 2>&1 || {
    tail -n 20 "$work/debootstrap.log" >&2
    exit 1
}
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
mkdir -p "$root/src/gpuarrayd"
# What a clone would have, with what is changed here.
(cd "$top" && git ls-files -z --cached --others --exclude-standard |
    tar --null --ignore-failed-read -T - -cf -) | tar -C "$root/src/gpuarrayd" --no-same-owner -xf -

# The root's own /dev, /proc, /tmp and /run; gone with the name space.
unshare --mount --pid --fork --kill-child sh -eu -c '
    root=$1
    mount --bind "$root" "$root" # a mount of its own, as a root is: files are on a known file system
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=755 dev "$root/dev"
    for device in null zero full random urandom tty; do
        touch "$root/dev/$device"
        mount --bind "/dev/$device" "$root/dev/$device"
    done
    mkdir -m 1777 "$root/dev/shm"
    ln -s /proc/self/fd "$root/dev/fd"
    mount -t tmpfs run "$root/run"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        chroot "$root" sh /src/gpuarrayd/tests/install-trial-inside.sh
' trial "$root"
