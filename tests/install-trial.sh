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
. "$top/tests/root.sh"
say() { printf '\n== %s\n' "$*"; }

work=$(mktemp -d "${TMPDIR:-/tmp}/gpuarrayd-trial.XXXXXX")
root=$work/root
finish() {
    if [ -n "$keep" ]; then echo "the root is $root"; else rm -rf --one-file-system "$work"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM

say "an empty $suite"
mirror=${2:-} root_make "$root" "$suite"
mkdir -p "$root/src/gpuarrayd"
# What a clone would have, with what is changed here.
(cd "$top" && git ls-files -z --cached --others --exclude-standard |
    tar --null --ignore-failed-read -T - -cf -) | tar -C "$root/src/gpuarrayd" --no-same-owner -xf -

root_run "$root" sh /src/gpuarrayd/tests/install-trial-inside.sh
