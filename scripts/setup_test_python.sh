#!/usr/bin/env bash
# Puts the Python packages that tests compare results with into .venv-test/. A finished install is kept until its pins
# change; an unfinished one is made anew.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

PINS=$PROJECT_ROOT/tests/requirements.txt
STAMP=$TEST_VENV/complete

# The place is part of the stamp: a venv that was moved has wrong paths inside.
wanted=$({ echo "$TEST_VENV"; cat "$PINS" "${BASH_SOURCE[0]}"; } | sha256sum | cut -d' ' -f1)
mkdir -p "$TEST_VENV"
exec 9<"$TEST_VENV"
flock -n 9 || { say "Python for tests: another setup is at work, waiting for it" && flock 9; }
if [ "$(cat "$STAMP" 2>/dev/null)" = "$wanted" ]; then
    say "Python for tests: already here"
    exit 0
fi

usable='ensurepip, venv'
PYTHON=$(find_python "$usable") || {
    apt_install python3 python3-venv || true
    PYTHON=$(find_python "$usable")
} || fail "Python 3.10 to 3.13 with venv is needed (Debian: apt-get install python3-venv)"

started=$SECONDS
find "$TEST_VENV" -mindepth 1 -delete
say "Python for tests: installing packages into .venv-test/ ($("$PYTHON" --version))"
"$PYTHON" -m venv "$TEST_VENV"
run_logged "$TEST_VENV/pip.log" "$TEST_VENV/bin/python3" -m pip install --disable-pip-version-check --no-deps \
    --no-compile --only-binary :all: -r "$PINS" ||
    fail "the packages could not be installed (see above); run this script again"
# Written last: whatever was interrupted before it is made anew.
echo "$wanted" >"$STAMP"
say "Python for tests: ready ($((SECONDS - started)) s)"
