# Runs one attempt at a run: sh attempt.sh FILE SEAT COMMAND…
# FILE must not exist yet: who creates it may run the command, nobody else. Into it go this
# process's id, the moment of its start (so that its id is no other's), SEAT and, at the end, the
# command's exit status. Its standard input has the seat on this machine, and is not the command's.
# POSIX sh: dash, bash, busybox.
set -Cfu
file=$1 seat=$2
shift 2
began() {
    shift 19
    began=$1
}
read -r stat </proc/self/stat
# shellcheck disable=SC2086 # its fields, one by one
began ${stat##*) }
{ printf '%s %s %s\n' "$$" "$began" "$seat" >"$file"; } 2>/dev/null || exit 125
# A signal to the whole group is the command's to answer; this shell waits for it. The command
# itself gets each signal as it was.
trap : HUP INT QUIT TERM USR1 USR2
"$@" </dev/null
code=$?
printf '%s\n' "$code" >>"$file"
exit "$code"
