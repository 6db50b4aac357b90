#!/bin/sh
# Becomes the command it is given. With VIRTUAL_DISPLAY=1 (or a size, such as 1920x1080x24) a
# display is there for it first, on which videos can be captured.
set -eu

fail() {
    printf 'entrypoint: %s\n' "$1" >&2
    exit 125
}

# start_display SIZE: Xvfb, with a number that it finds itself, into DISPLAY.
start_display() {
    command -v Xvfb >/dev/null || fail "VIRTUAL_DISPLAY is set, and this image has no Xvfb"
    folder=$(mktemp -d)
    # Two forks: init is its parent, so that the command has no child that it did not start.
    (
        trap '' INT TERM # the command may still draw while it is told to stop
        exec Xvfb -displayfd 3 -screen 0 "$1" -nolisten tcp -noreset \
            3>"$folder/display" >"$folder/log" 2>&1 &
    )
    tries=0
    while ! [ -s "$folder/display" ]; do
        tries=$((tries + 1))
        if [ "$tries" -gt 100 ]; then
            cat "$folder/log" >&2
            fail "Xvfb did not start a display of $1 within 10 s"
        fi
        sleep 0.1
    done
    read -r number <"$folder/display"
    rm -r "$folder"
    export DISPLAY=":$number"
}

[ $# -gt 0 ] || fail "no command was given"
case ${VIRTUAL_DISPLAY:-} in
'' | 0) ;;
1) start_display 1280x720x24 ;;
*[!0-9x]*) fail "VIRTUAL_DISPLAY=$VIRTUAL_DISPLAY is neither 1 nor a size such as 1280x720x24" ;;
*x*x*) start_display "$VIRTUAL_DISPLAY" ;;
*) fail "VIRTUAL_DISPLAY=$VIRTUAL_DISPLAY is neither 1 nor a size such as 1280x720x24" ;;
esac
exec "$@"
