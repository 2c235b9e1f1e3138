#!/usr/bin/env bash
# Puts the ONNX Runtime shared library into .onnxruntime/, taken from its PyPI wheel. A finished install is kept.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

VERSION=1.32.0
case "$(uname -m)" in
x86_64)
    PLATFORM=manylinux_2_28_x86_64
    SHA256=5a34fc4dfeb5a7b4a74c95dcba1e773d722abda720b474edf1b0c419dc6d163d
    ;;
aarch64)
    PLATFORM=manylinux_2_28_aarch64
    SHA256=2303372a85299b6757b0e11e1cbf13e410ddf7e10c37f4b37e99d1c90e7daf7c
    ;;
*) fail "ONNX Runtime has no wheel for $(uname -m): install its library and set ORT_DYLIB_PATH" ;;
esac

LIBRARY=$ONNXRUNTIME_DIR/libonnxruntime.so.$VERSION
STAMP=$ONNXRUNTIME_DIR/complete
if [ -f "$LIBRARY" ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$SHA256" ]; then
    say "ONNX Runtime $VERSION: already here"
    exit 0
fi

PYTHON=$(find_python pip) || {
    apt_install python3 python3-pip || true
    PYTHON=$(find_python pip)
} || fail "Python 3.10 to 3.13 with pip is needed to fetch ONNX Runtime (Debian: apt-get install python3-pip)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say "fetching ONNX Runtime $VERSION for $(uname -m)"
# The library is the same in the wheel of every Python version; naming one gives one hash to check.
echo "onnxruntime==$VERSION --hash=sha256:$SHA256" >"$work/requirements.txt"
run_logged "$work/log" "$PYTHON" -m pip download --disable-pip-version-check --require-hashes --no-deps \
    --only-binary :all: --platform "$PLATFORM" --python-version 3.11 --dest "$work" -r "$work/requirements.txt" ||
    fail "ONNX Runtime could not be fetched (see above); run this again, or set ORT_DYLIB_PATH to a library of yours"
mkdir -p "$ONNXRUNTIME_DIR"
rm -rf "${ONNXRUNTIME_DIR:?}"/*
"$PYTHON" - "$work"/onnxruntime-*.whl "$ONNXRUNTIME_DIR" <<'PYTHON'
import pathlib, sys, zipfile
wheel, target = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        path = pathlib.PurePosixPath(name)
        if path.parent.name == "capi" and path.name.startswith("libonnxruntime"):
            (pathlib.Path(target) / path.name).write_bytes(archive.read(name))
PYTHON
[ -f "$LIBRARY" ] || fail "the wheel of ONNX Runtime $VERSION holds no $(basename "$LIBRARY")"
# The stamp is written last: whatever was interrupted before it is done again.
echo "$SHA256" >"$STAMP"
say "ONNX Runtime $VERSION: ready"
