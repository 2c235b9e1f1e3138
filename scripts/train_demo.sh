#!/usr/bin/env bash
# Trains the demo model from nothing, puts it into models/demo-trained and prints its held-out figures. Hours on a CPU;
# stop it at any time and call it again: it goes on from the last two minutes. STEPS=N trains longer or shorter.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$PROJECT_ROOT"

STEPS=${STEPS:-20000}
WORK=$PROJECT_ROOT/target/train-demo
MODEL=$PROJECT_ROOT/models/demo-trained
VENV=$WORK/venv
WALKS=600 FRAMES=200

scripts/setup_rust.sh
scripts/setup_onnxruntime.sh
use_onnxruntime
mkdir -p "$WORK"
cargo build --release --locked --no-default-features --bin lingbot_map
if [ "$(cat "$VENV/complete" 2>/dev/null)" != "$(sha256sum <tools/train_demo/requirements.txt)" ]; then
    PYTHON=$(find_python 'ensurepip, venv') || fail "Python 3.11 to 3.13 with venv is needed"
    say "installing PyTorch into target/train-demo/venv (some GB)"
    rm -rf "$VENV"
    "$PYTHON" -m venv "$VENV"
    run_logged "$WORK/pip.log" "$VENV/bin/pip" install -r tools/train_demo/requirements.txt ||
        fail "the packages could not be installed (see above); run this script again"
    sha256sum <tools/train_demo/requirements.txt >"$VENV/complete"
fi
if [ ! -f "$WORK/views/camera.yaml" ]; then
    say "rendering $((WALKS * FRAMES)) views (6 GB)"
    rm -rf "$WORK/views"
    target/release/lingbot_map world --format npy --walks $WALKS --frames $FRAMES --trajectory 1000 \
        --output "$WORK/views"
fi
"$VENV/bin/python3" tools/train_demo/train.py --data "$WORK/views" --walk-length $FRAMES --output "$WORK/state" \
    --steps "$STEPS"
"$VENV/bin/python3" tools/train_demo/export.py --state "$WORK/state" --output "$MODEL"
"$VENV/bin/python3" tools/train_demo/measure.py --tool target/release/lingbot_map --model "$MODEL" |
    tee "$MODEL/figures.md"
