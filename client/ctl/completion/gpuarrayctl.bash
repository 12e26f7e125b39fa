# Completion of gpuarrayctl for bash: verbs, options, jobs, operations, files.
#
# Verbs and options are read from --help, so they are those of the command that is installed. Jobs and
# operations are asked of the daemon, if one runs: a key that is pressed starts none.

_gpuarrayctl_verbs() {
    gpuarrayctl --help 2>/dev/null | sed -n '/^Examples:/q; s/^  \([a-z][a-z]*\)  *[^ ].*/\1/p'
}

_gpuarrayctl_options() {
    gpuarrayctl "$1" --help 2>/dev/null |
        sed -n '/^Examples:/q; s/^  *\(-[a-zA-Z?], \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p'
}

_gpuarrayctl_jobs() {
    gpuarrayctl jobs "$@" 2>/dev/null | awk 'NR > 1 {print $1}'
}

_gpuarrayctl_devices() {
    gpuarrayctl daemon path >/dev/null 2>&1 &&
        gpuarrayctl info 2>/dev/null | sed -n 's/^ *name  *\(cuda:[0-9]*\)$/\1/p'
}

_gpuarrayctl_operations() {
    gpuarrayctl daemon path >/dev/null 2>&1 &&
        gpuarrayctl ops 2>/dev/null | sed 's/^q, r = //; s/(.*//; /^DTYPE/d'
}

# The words for the verb $1, after the word $2.
_gpuarrayctl_words() {
    case "$2" in
    --state) echo queued running settling done failed cancelled active; return ;;
    --dtype) echo bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64; return ;;
    --engine) echo auto cpu cuda; _gpuarrayctl_devices; return ;;
    --mode) echo constant edge reflect symmetric wrap; return ;;
    --shape | --seed | --alpha | --beta | --axes | --axis | --n | --shift | --repeats | --reps | --width | --pad-width | --value | --constant-values | --priority | --label | -l | --timeout | --interval | -n | --count | -c | --lines) return ;;
    esac
    case "$1" in
    status | watch) _gpuarrayctl_jobs ;;
    wait | cancel) _gpuarrayctl_jobs --state active ;;
    daemon) echo status start stop path log ;;
    random) [ "$2" = random ] && echo uniform normal lognormal exponential integers bernoulli poisson choice permutation ;;
    ops) _gpuarrayctl_operations ;;
    help) _gpuarrayctl_verbs ;;
    esac
}

_gpuarrayctl() {
    local current="${COMP_WORDS[COMP_CWORD]}" previous="" verb="${COMP_WORDS[1]}"
    [ "$COMP_CWORD" -gt 1 ] && previous="${COMP_WORDS[COMP_CWORD - 1]}"
    [ "$current" = "=" ] && current=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -le 1 ]; then
        COMPREPLY=($(compgen -W "$(_gpuarrayctl_verbs) help --help --version" -- "$current"))
    elif [ "${current#-}" != "$current" ]; then
        COMPREPLY=($(compgen -W "$(_gpuarrayctl_options "$verb")" -- "$current"))
    else
        COMPREPLY=($(compgen -W "$(_gpuarrayctl_words "$verb" "$previous")" -- "$current"))
        case "$verb" in
        run | matmul | random | submit | convert | info | show | transpose | concatenate | stack | flip | roll | tile | pad | diff)
            # sources and destinations, also behind NAME=
            compopt -o filenames 2>/dev/null
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current")
            ;;
        esac
    fi
}

complete -F _gpuarrayctl gpuarrayctl
