#!/usr/bin/env bash
# Plants each fault of tests/planted_faults in a copy of this commit and says which tests notice.
#   scripts/planted_faults.sh            runs the tests with each fault in place
#   scripts/planted_faults.sh --check    only whether every fault can still be planted
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$PROJECT_ROOT"

if [ "${1:-}" = --check ]; then
    for fault in tests/planted_faults/*.patch; do
        git apply --check "$fault" || fail "$fault no longer fits the code"
    done
    exit
fi

scripts/setup_rust.sh
scripts/setup_onnxruntime.sh
use_onnxruntime
COPY=$PROJECT_ROOT/target/planted-faults
LOG=$PROJECT_ROOT/target/planted-faults.log
clean_up() {
    git worktree remove --force "$COPY" 2>/dev/null || true
}
trap clean_up EXIT
clean_up
git worktree add --quiet --detach "$COPY" HEAD

MISSED=0
printf '| fault | tests that fail |\n|---|---|\n'
for fault in "$PROJECT_ROOT"/tests/planted_faults/*.patch; do
    name=$(basename "$fault" .patch)
    git -C "$COPY" checkout --quiet -- .
    git -C "$COPY" apply "$fault" || fail "$fault no longer fits the code"
    outcome=0
    # Only what compares with references and with the truth: a unit test of the changed line proves little.
    (cd "$COPY" && CARGO_TARGET_DIR=$PROJECT_ROOT/target cargo test --locked --no-default-features --no-fail-fast \
        --test network --test cli) >"$LOG" 2>&1 || outcome=$?
    noticed=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/`\1`/p' "$LOG" | sort | paste -sd ' ')
    if [ $outcome != 0 ] && [ -z "$noticed" ]; then
        tail -n 20 "$LOG" >&2
        fail "the tests did not run with $name"
    fi
    [ -n "$noticed" ] || MISSED=$((MISSED + 1))
    printf '| %s | %s |\n' "${name//_/ }" "${noticed:-none}"
done
[ $MISSED = 0 ] || fail "$MISSED faults go unnoticed"
