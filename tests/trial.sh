# Sourced inside an empty root by what is tried there: checks that are counted, people who try.
passed=0
failed=0
say() { printf '\n== %s\n' "$*"; }

# check NAME COMMAND...: one thing that must be so.
check() {
    name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok: $name"
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
    fi
}

as_person() {
    user=$1
    shift
    cd "/home/$user"
    exec runuser -u "$user" -- env -u XDG_RUNTIME_DIR HOME="/home/$user" "$@"
}

# person USER COMMAND...: as somebody else, at home; exit code in $code, what it said in $said.
person() {
    code=0
    said=$( (as_person "$@") 2>&1) || code=$?
    printf '%s$' "$1"
    shift
    printf ' %s' "$@"
    printf '\n%s\n' "$said"
}
says() { printf '%s' "$said" | grep -q "$1"; }

# person_later USER COMMAND...: the same while others go on; person_ended waits for it.
person_later() {
    (as_person "$@") >/tmp/said 2>&1 &
    later=$!
}
person_ended() {
    code=0
    wait "$later" || code=$?
    said=$(cat /tmp/said)
    printf '%s\n' "$said"
}

ended() {
    printf '\n%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" = 0 ]
}
