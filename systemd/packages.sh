#!/bin/sh
# packages.sh [--cuda] [--no-trial]
# Debian's packages of this tree for the release that this runs on, into build/packages: gpuarrayd,
# libgpuarrayd1, libgpuarrayd-dev and python3-gpuarrayd, and with --cuda, where nvcc is,
# gpuarrayd-cuda. They are looked through by lintian and tried by tests/packages-trial.sh, which needs
# root. Ends with that one's `N passed, N failed`.
#
# What makes them is in systemd/debian; debhelper wants it at the top, so it works in a copy of what
# a clone would have. $GPUARRAYD_OPTIONS: more options of meson. $GPUARRAYD_REVISION: of the package,
# 1 unless given: packages of one version differ by it. $DEBFULLNAME, $DEBEMAIL: whose they are.
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/tests/setup.sh"
profiles=
trial=yes
for word; do
    case $word in
    --cuda) profiles=pkg.gpuarrayd.cuda ;;
    --no-trial) trial= ;;
    *)
        echo "packages.sh: unknown option $word" >&2
        exit 2
        ;;
    esac
done
if [ -n "$profiles" ] && ! has_nvcc; then
    echo "packages.sh: --cuda needs nvcc" >&2
    exit 2
fi
need build packages
made=$build/packages
source=$made/source
log=$made/build.log
mkdir -p "$made"
rm -rf "$source" "$made"/*.deb

say "a copy of the tree"
mkdir "$source"
(cd "$top" && git ls-files -z --cached --others --exclude-standard |
    tar --null --ignore-failed-read -T - -cf -) | tar -C "$source" --no-same-owner -xf -
cp -r "$source/systemd/debian" "$source/debian"
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$top/meson.build" | head -n 1)
release=$(. /etc/os-release && echo "$ID$VERSION_ID")
date=$(git -C "$top" log -1 --format=%cD 2>/dev/null || date -R)
maintainer="${DEBFULLNAME:-$(id -un)} <${DEBEMAIL:-$(id -un)@$(hostname)}>"
cat >"$source/debian/changelog" <<CHANGES
gpuarrayd ($version+${GPUARRAYD_REVISION:-1}~$release) unstable; urgency=medium

  * Made of the tree by systemd/packages.sh.

 -- $maintainer  $date
CHANGES
# What the build asks for is what the list of packages names; the first that apt knows.
needs=$(while read -r purpose package _; do
    if [ "$purpose" = build ]; then
        case $package in
        *-dev*"|-") if is_known "${package%|-}"; then printf ' %s,\\n' "${package%|-}"; fi ;;
        libcriterion-dev) ;;
        *-dev* | meson | ninja-build | pkg-config*) printf ' %s,\\n' "$package" | sed 's/|/ | /g' ;;
        esac
    fi
done <"$top/tests/packages.txt")
sed -i "s/^@NEEDS@/${needs%\\n}/; s/^Maintainer: .*/Maintainer: $maintainer/" \
    "$source/debian/control"

say "packages"
(cd "$source" && DEB_BUILD_OPTIONS="parallel=$(nproc) nocheck noautodbgsym ${DEB_BUILD_OPTIONS:-}" \
    dpkg-buildpackage --build=binary --no-sign ${profiles:+-P$profiles}) >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    exit 1
}
ls -l "$made"/*.deb
say "lintian"
# Whose packages are for machines of their own needs no address for the world.
lintian --no-cfg --allow-root --fail-on error --suppress-tags "$(echo bogus-mail-host \
    bogus-mail-host-in-debian-changelog root-in-contact mail-address-loops-or-bounces |
    tr ' ' ,)" "$made"/*.deb
if [ -n "$trial" ]; then exec sh "$top/tests/packages-trial.sh" "$made"; fi
