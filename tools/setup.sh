#!/bin/sh
# Finds a Python that can run runfleet and lets it set the clone up (tools/setup.py).
# PYTHON=/path/to/python chooses one; else the clone's own .venv goes on being used.
set -eu
cd "$(dirname "$0")/.."

suits() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

if [ -n "${PYTHON:-}" ]; then
    suits "$PYTHON" && exec "$PYTHON" -B tools/setup.py
    echo "setup: PYTHON=$PYTHON is not a Python 3.10, 3.11, 3.12 or 3.13." >&2
    exit 1
fi
# A name on PATH may be a shim that only says "not installed": each is tried by running it.
for python in .venv/bin/python python3 python3.13 python3.12 python3.11 python3.10; do
    suits "$python" && exec "$python" -B tools/setup.py
done
cat >&2 <<'END'
setup: no Python 3.10, 3.11, 3.12 or 3.13 was found. On Debian or Ubuntu:
    sudo apt-get install python3 python3-venv
or name one: PYTHON=/path/to/python3.12 make setup
END
exit 1
