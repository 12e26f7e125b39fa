# Sourced by what is tried in an empty Debian root: makes one, and runs programs in it. Mounts and
# processes are in name spaces of their own and end with the program. Needs root and debootstrap.

# root_make ROOT SUITE [DEBOOTSTRAP OPTION...]: MIRROR in $mirror, or debootstrap's own. With what
# the machine needs to reach the indexes.
root_make() {
    made_root=$1
    made_suite=$2
    shift 2
    if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
        echo "${0##*/}: needs root and debootstrap" >&2
        return 2
    fi
    debootstrap --variant=minbase "$@" "$made_suite" "$made_root" ${mirror:+"$mirror"} \
        >"$made_root.log" 2>&1 || {
        tail -n 20 "$made_root.log" >&2
        return 1
    }
    cp -L /etc/resolv.conf "$made_root/etc/resolv.conf"
    if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
        mkdir -p "$made_root/etc/ssl/certs"
        cp -L /etc/ssl/certs/ca-certificates.crt "$made_root/etc/ssl/certs/"
    fi
    if [ -e /etc/pip.conf ]; then cp -L /etc/pip.conf "$made_root/etc/"; fi
}

# root_run ROOT PROGRAM [ARGUMENT...]: with its own /dev, /proc, /tmp and /run, and no variable of
# this process.
root_run() {
    unshare --mount --pid --fork --kill-child sh -eu -c '
        root=$1
        shift
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
            chroot "$root" "$@"
    ' root "$@"
}
