# Starts one run: finds its index, decodes it into parameters and a seed (mixed radix, the
# seed turning fastest), exports them, and becomes the user's command.
# POSIX sh: dash, bash, busybox. Values pass through printf's %b, never through eval.
set -fu
nl='
'

fail() {
    printf 'runfleet: %s\n' "$1" >&2
    exit 125
}

# pick RANGES K: the K-th number (from 0) of "0-9,12,20:3:e", into $picked.
pick() {
    pick_rest=$1, pick_k=$2
    while [ -n "$pick_rest" ]; do
        pick_part=${pick_rest%%,*} pick_rest=${pick_rest#*,}
        size "$pick_part"
        if [ "$pick_k" -lt "$sized" ]; then
            case $pick_part in
            *:*) pick_bit "${pick_part%%:*}" "${pick_part##*:}" "$pick_k" ;;
            *) picked=$((${pick_part%-*} + pick_k)) ;;
            esac
            return
        fi
        pick_k=$((pick_k - sized))
    done
    fail "there is no number $2 in $1"
}

# pick_bit FIRST HEX K: the number of the K-th bit that is set, into $picked.
pick_bit() {
    picked=$1 bit_rest=$2 bit_k=$3
    while [ -n "$bit_rest" ]; do
        bit_digit=$((0x${bit_rest%"${bit_rest#?}"})) bit_rest=${bit_rest#?}
        for bit_mask in 8 4 2 1; do
            bit_k=$((bit_k - ((bit_digit & bit_mask) > 0)))
            [ "$bit_k" -ge 0 ] || return 0
            picked=$((picked + 1))
        done
    done
    fail "there is no bit $3 in $2"
}

# size PART: how many numbers it stands for, into $sized.
size() {
    case $1 in
    *:*) sized=${1#*:} sized=${sized%:*} ;;
    *) sized=$((${1#*-} - ${1%-*} + 1)) ;;
    esac
}

# count RANGES: how many numbers they stand for, into $counted.
count() {
    count_rest=$1, counted=0
    while [ -n "$count_rest" ]; do
        size "${count_rest%%,*}"
        count_rest=${count_rest#*,} counted=$((counted + sized))
    done
}

# take: the next line of $rest, into $line.
take() {
    line=${rest%%"$nl"*} rest=${rest#*"$nl"}
}

# skip N: N lines of $rest less.
skip() {
    skip_n=$1
    while [ "$skip_n" -gt 0 ]; do
        rest=${rest#*"$nl"} skip_n=$((skip_n - 1))
    done
}

# decode LINE: what it stands for, into $decoded. The dot keeps newlines at the end.
decode() {
    decoded=$1
    case $1 in
    *\\*) ;;
    *) return ;; # a process less
    esac
    decoded=$(printf '%b.' "$1")
    decoded=${decoded%.}
}

# bind WIDTH: takes as many values of $rest, appends them to $values and exports them under
# the first of $names.
bind() {
    bind_n=$1
    while [ "$bind_n" -gt 0 ]; do
        take
        values=$values$line$nl
        decode "$line"
        export "RUNFLEET_PARAM_${names%%"$nl"*}=$decoded"
        names=${names#*"$nl"} bind_n=$((bind_n - 1))
    done
}

# take_names WIDTH: as many lines of $rest, into $names.
take_names() {
    names='' name_n=$1
    while [ "$name_n" -gt 0 ]; do
        take
        names=$names$line$nl name_n=$((name_n - 1))
    done
}

# included: whether $index is that of a cell behind the grid, whose values are then bound.
included() {
    values='' rest=${RUNFLEET_PLAN_INCLUDED:-}
    [ -n "$rest" ] || return 1
    take
    width=${line% *} row=$((index - ${line#* }))
    [ "$row" -ge 0 ] || return 1
    take_names "$width"
    skip $((row * width))
    bind "$width"
}

# choose: walks the axes from the last to the first, as the digits of $index turn. The axes
# come first to last, so the radix of those behind is divided away: $below is its product.
choose() {
    below=1
    rest=${RUNFLEET_PLAN_AXES:-}
    while [ -n "$rest" ]; do
        take
        below=$((below * ${line#* }))
        skip $((${line% *} + ${line% *} * ${line#* }))
    done
    values='' rest=${RUNFLEET_PLAN_AXES:-}
    while [ -n "$rest" ]; do
        take
        width=${line% *} rows=${line#* }
        below=$((below / rows))
        row=$((index / below % rows))
        take_names "$width"
        skip $((row * width))
        bind "$width"
        skip $(((rows - row - 1) * width))
    done
}

pick "$RUNFLEET_PLAN_RUNS" "${AWS_BATCH_JOB_ARRAY_INDEX:-0}"
run=$picked index=$picked
if [ -n "${RUNFLEET_PLAN_SEEDS:-}" ]; then
    count "$RUNFLEET_PLAN_SEEDS"
    pick "$RUNFLEET_PLAN_SEEDS" $((index % counted))
    index=$((index / counted))
    export RUNFLEET_SEED="$picked"
fi
included || choose
export RUNFLEET_RUN="$run"
export WANDB_RUN_ID="$RUNFLEET_EXPERIMENT-$run" WANDB_RESUME=allow

# Of a run on several machines: which of them this is, and where the main one listens, as torch and
# torchrun read it. The main node alone is not told its address (AWS Batch User Guide).
if [ "${AWS_BATCH_JOB_NUM_NODES:-1}" -gt 1 ]; then
    export RUNFLEET_NODES="$AWS_BATCH_JOB_NUM_NODES" RUNFLEET_NODE="$AWS_BATCH_JOB_NODE_INDEX"
    : "${MASTER_ADDR:=${AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS:-127.0.0.1}}"
    : "${MASTER_PORT:=29500}"
    export MASTER_ADDR MASTER_PORT PET_MASTER_ADDR="$MASTER_ADDR" PET_MASTER_PORT="$MASTER_PORT"
    export PET_NNODES="$RUNFLEET_NODES" PET_NODE_RANK="$RUNFLEET_NODE"
fi

set --
label=${WANDB_NAME:-} argument='' rest=$RUNFLEET_PLAN_ARGV
while [ -n "$rest" ]; do
    take
    case $line in
    =*)
        decode "${line#=}"
        argument=$argument$decoded
        ;;
    '#') argument=$argument$RUNFLEET_SEED ;;
    @*)
        program=$rest rest=$values
        skip "${line#@}"
        take
        decode "$line"
        argument=$argument$decoded rest=$program
        ;;
    ';')
        set -- "$@" "$argument"
        argument=''
        ;;
    '!') # a part of the run's name at W&B, which is one line of 128 characters at most
        case $argument in
        *"$nl"*) ;;
        *) [ $((${#label} + ${#argument})) -gt 128 ] || label=$label$argument ;;
        esac
        argument=''
        ;;
    *) fail "the job's command can't be read: $line" ;;
    esac
done
export WANDB_NAME="${label# }"
[ -n "$WANDB_NAME" ] || unset WANDB_NAME # W&B finds one
unset RUNFLEET_PLAN_RUNS RUNFLEET_PLAN_SEEDS RUNFLEET_PLAN_AXES RUNFLEET_PLAN_INCLUDED
unset RUNFLEET_PLAN_ARGV
exec "$@"
