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

# pick RANGES K: the K-th number (from 0) of "0-9,12", into $picked.
pick() {
    pick_rest=$1, pick_k=$2
    while [ -n "$pick_rest" ]; do
        pick_part=${pick_rest%%,*} pick_rest=${pick_rest#*,}
        pick_first=${pick_part%-*} pick_last=${pick_part#*-}
        if [ "$pick_k" -le $((pick_last - pick_first)) ]; then
            picked=$((pick_first + pick_k))
            return
        fi
        pick_k=$((pick_k - pick_last + pick_first - 1))
    done
    fail "there is no number $2 in $1"
}

# count RANGES: how many numbers they stand for, into $counted.
count() {
    count_rest=$1, counted=0
    while [ -n "$count_rest" ]; do
        count_part=${count_rest%%,*} count_rest=${count_rest#*,}
        counted=$((counted + ${count_part#*-} - ${count_part%-*} + 1))
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
    decoded=$(printf '%b.' "$1")
    decoded=${decoded%.}
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
        names=''
        name_n=0
        while [ "$name_n" -lt "$width" ]; do
            take
            names=$names$line$nl name_n=$((name_n + 1))
        done
        skip $((row * width))
        name_n=0
        while [ "$name_n" -lt "$width" ]; do
            take
            values=$values$line$nl
            decode "$line"
            export "RUNFLEET_PARAM_${names%%"$nl"*}=$decoded"
            names=${names#*"$nl"} name_n=$((name_n + 1))
        done
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
choose
export RUNFLEET_RUN="$run"
export WANDB_RUN_ID="$RUNFLEET_EXPERIMENT-$run" WANDB_RESUME=allow

set --
argument='' rest=$RUNFLEET_PLAN_ARGV
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
    *) fail "the job's command can't be read: $line" ;;
    esac
done
unset RUNFLEET_PLAN_RUNS RUNFLEET_PLAN_SEEDS RUNFLEET_PLAN_AXES RUNFLEET_PLAN_ARGV
exec "$@"
