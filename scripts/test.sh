#!/usr/bin/env bash
# Sets up what is missing, then runs every check of the project and ends with a summary.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$PROJECT_ROOT" || exit 1

SUMMARY=()
FAILED=0

# check NAME COMMAND...: runs it, notes how it ended and goes on.
check() {
    local name=$1 started=$SECONDS outcome=passed
    shift
    say "$name"
    "$@" || outcome=FAILED
    [ $outcome = passed ] || FAILED=$((FAILED + 1))
    SUMMARY+=("$(printf '%-8s %4d s  %s' $outcome $((SECONDS - started)) "$name")")
}

for setup in rust onnxruntime test_python ros; do
    scripts/setup_$setup.sh || exit 1
done
use_onnxruntime || exit 1

# Without ROS: no variable of a ROS environment is set in here.
check "format" cargo fmt --check
check "planted faults fit the code" scripts/planted_faults.sh --check
check "clippy without ROS" cargo clippy --locked --quiet --no-default-features --all-targets -- -D warnings
check "tests without ROS" cargo test --locked --no-default-features
check "path errors against evo's" "$TEST_VENV/bin/python3" -m pytest -p no:cacheprovider -q tests/evaluate

use_ros || exit 1
check "clippy with ROS" cargo clippy --locked --quiet --all-targets -- -D warnings
# The programs in tests/ know nothing of ROS and have just run; what the feature adds is tested in the library.
check "tests with ROS" cargo test --locked --lib
check "build of the node" cargo build --locked --bins --examples
check "running node and launch file" "$ROS_PYTHON" -m pytest -p no:cacheprovider -rs -q tests/ros

say "summary"
printf '   %s\n' "${SUMMARY[@]}"
echo "$((${#SUMMARY[@]} - FAILED)) passed, $FAILED failed"
[ $FAILED = 0 ]
