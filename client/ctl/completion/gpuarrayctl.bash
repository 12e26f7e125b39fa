# Completion of gpuarrayctl for bash: verbs, options, jobs, operations, files and what is in them.
#
# Verbs and options are read from --help, so they are those of the command that is installed. Jobs and
# operations are asked of the daemon, if one runs: a key that is pressed starts none. Names inside files
# are asked of gpuarrayctl, which needs no daemon for that.

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
    --state) echo queued running paused settling done failed cancelled active; return ;;
    --dtype) echo bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64; return ;;
    --engine) echo auto cpu cuda; _gpuarrayctl_devices; return ;;
    --mode)
        [ "$1" = take ] && echo raise wrap clip || echo constant edge reflect symmetric wrap
        return ;;
    --shape | --seed | --alpha | --beta | --axes | --axis | --n | --shift | --repeats | --reps | --width | --pad-width | --value | --constant-values | --priority | --queue-timeout | --deadline | --label | -l | --timeout | --last | --interval | -n | --count | -c | --lines | --batch-size | --epoch | --shard | --index | --rank | --ranks | --ridge | --tolerance | --iterations | --reads | --of | --oversamples | --rcond | -k) return ;;
    --weight) getent passwd | sed 's/:.*/=/'; return ;;
    --user) getent passwd | sed 's/:.*//'; return ;;
    --plan) echo direct scan copy resident; return ;;
    --init) echo random svd; return ;;
    --picture) echo auto always never; return ;;
    --colours) echo viridis magma grey; return ;;
    esac
    case "$1" in
    status | watch | trace) _gpuarrayctl_jobs ;;
    wait | cancel | pause) _gpuarrayctl_jobs --state active ;;
    resume) _gpuarrayctl_jobs --state paused ;;
    daemon) echo status start stop path log ;;
    random) [ "$2" = random ] && echo uniform normal lognormal exponential integers bernoulli poisson choice permutation ;;
    ops) _gpuarrayctl_operations ;;
    help) _gpuarrayctl_verbs ;;
    esac
}

# The word at the cursor without its quotation marks and backslashes: `word`; `quote`: the mark that is
# still open. bash itself cuts words at colons and equals signs.
_gpuarrayctl_read_word() {
    local line="${COMP_LINE:0:COMP_POINT}" i char
    word="" quote=""
    for ((i = 0; i < ${#line}; i++)); do
        char="${line:i:1}"
        if [ "$char" = "\\" ] && [ "$quote" != "'" ]; then
            i=$((i + 1))
            word+="${line:i:1}"
        elif [ -n "$quote" ] && [ "$char" = "$quote" ]; then
            quote=""
        elif [ -n "$quote" ]; then
            word+="$char"
        else
            case "$char" in
            "'" | '"') quote="$char" ;;
            ' ' | $'\t' | ';' | '|' | '&' | '<' | '>' | '(' | ')') word="" ;;
            *) word+="$char" ;;
            esac
        fi
    done
}

# $1 as it stands on the line, within the quotation marks that are open there.
_gpuarrayctl_quoted() {
    case "$quote" in
    "'") printf '%s\n' "${1//"'"/"'\\''"}" ;;
    '"') printf '%s\n' "$1" | sed 's/[\\"$`]/\\&/g' ;;
    *) printf '%q\n' "$1" ;;
    esac
}

# Where the word is FILE:... or NAME=FILE:..., and there is such a file: what it has. $1: the end of the word
# that bash replaces.
_gpuarrayctl_inside() {
    local word quote before="" file inner folder part="$1" name i names
    _gpuarrayctl_read_word
    [[ "$word" == *:* ]] || return 1
    for before in "${word%%=*}=" ""; do
        file="${word#"$before"}"
        [ "$before$file" = "$word" ] || continue
        for ((i = 0; i < ${#file}; i++)); do
            [ "${file:i:1}" = ":" ] || continue
            inner="${file:i+1}" name="${file:0:i}"
            [[ "$name" == "~/"* ]] && name="$HOME${name:1}"
            [ -f "$name" ] || [ -d "$name" ] && break 2
        done
        inner=""
        name=""
    done
    [ -n "$name" ] || return 1
    folder=""
    [[ "$inner" == */* ]] && folder="${inner%/*}"
    mapfile -t names < <(timeout 5 gpuarrayctl info --names -- "$name:$folder" 2>/dev/null)
    [ "$quote" != "'" ] && part="$(printf '%s' "$part" | sed 's/\\\(.\)/\1/g')"
    [[ "$word" == *"$part" ]] || part=""
    before="${word:0:${#word}-${#inner}}"
    for name in "${names[@]}"; do
        [[ "$inner" == /* ]] || name="${name#/}"
        [[ "$name" == "$inner"* ]] || continue
        name="$before$name"
        COMPREPLY+=("$(_gpuarrayctl_quoted "${name:${#word}-${#part}}")")
    done
    if [ ${#COMPREPLY[@]} -eq 1 ] && [[ "${COMPREPLY[0]}" == */ ]]; then
        compopt -o nospace 2>/dev/null
    fi
    return 0
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
        run | map | matmul | random | submit | convert | info | show | transpose | concatenate | stack | flip | roll | tile | pad | take | shuffle | batches | diff | cp | tucker | reconstruct | svd | pca | lstsq)
            # sources and destinations, also behind NAME=
            _gpuarrayctl_inside "$2" && return
            compopt -o filenames 2>/dev/null
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current")
            ;;
        esac
    fi
}

complete -F _gpuarrayctl gpuarrayctl
