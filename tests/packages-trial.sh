#!/bin/sh
# packages-trial.sh FOLDER
# The life of Debian's packages, which systemd/packages.sh made into FOLDER, in an empty root of this
# machine's release: installed, used by two people while a third may not, upgraded under a running
# job, removed, purged. Ends with `N passed, N failed`. It needs root, debootstrap, Debian's archive
# and 1 GB below $TMPDIR.
. "$(dirname "$0")/setup.sh"
. "$top/tests/root.sh"
made=$(cd "$1" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/gpuarrayd-packages.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")

say "an empty $suite"
# Half of what is linked lies in Ubuntu's universe, which debootstrap leaves out by itself.
components=$(. /etc/os-release && if [ "$ID" = ubuntu ]; then echo --components=main,universe; fi)
# shellcheck disable=SC2086
root_make "$work/root" "$suite" $components
mkdir -p "$work/root/src/first" "$work/root/src/second"
cp "$top/tests/packages-trial-inside.sh" "$top/tests/trial.sh" "$work/root/src"

# The same packages of a later version.
for package in "$made"/*.deb; do
    cp "$package" "$work/root/src/first"
    version=$(dpkg-deb -f "$package" Version)
    rm -rf "$work/open"
    dpkg-deb -R "$package" "$work/open"
    sed -i "s/$version/$version.2/g" "$work/open/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$work/open" "$work/root/src/second" >/dev/null
done
root_run "$work/root" sh /src/packages-trial-inside.sh
