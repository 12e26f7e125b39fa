#!/bin/sh
# install-config.sh FILE DIRECTORY: FILE goes into DIRECTORY (below DESTDIR) unless one of its name is
# there. Called by 'meson install'.
set -eu
to=${DESTDIR:-}$2
if [ -e "$to/${1##*/}" ]; then
    echo "$to/${1##*/} is kept as it is"
else
    [ -d "$to" ] || install -d -m 755 "$to"
    install -m 644 "$1" "$to/"
fi
