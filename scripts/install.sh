#!/usr/bin/env bash
# Installs the release build as colcon would. usage: install.sh PREFIX
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
use_ros
cd "$PROJECT_ROOT"
cmake -S . -B target/install_build -DCMAKE_INSTALL_PREFIX="$1" -DCARGO_TARGET_DIR="$PROJECT_ROOT/target"
cmake --build target/install_build --target install
