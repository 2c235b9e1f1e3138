#!/usr/bin/env bash
# Builds and installs the package with stock colcon into target/colcon/install, and checks what lies there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
use_ros
command -v colcon >/dev/null || fail "colcon is needed: pip install colcon-common-extensions"

cd "$PROJECT_ROOT"
base=target/colcon
# One target folder for every build of the project: nothing is compiled twice.
colcon --log-base $base/log build --paths . --packages-select lingbot_map \
    --build-base $base/build --install-base $base/install \
    --event-handlers console_direct+ desktop_notification- \
    --cmake-args -DCARGO_TARGET_DIR="$PROJECT_ROOT/target"

installed=$base/install/lingbot_map
for file in lib/lingbot_map/{mapping_node,lingbot_map} share/lingbot_map/package.xml \
    share/lingbot_map/launch/mapping.launch.py share/lingbot_map/config/{mapping.yaml,fastdds.xml,mapping.rviz} \
    share/lingbot_map/models/demo/{config.json,weights.safetensors} \
    share/ament_index/resource_index/packages/lingbot_map; do
    [ -e $installed/$file ] || fail "colcon installed no $file"
done
$installed/lib/lingbot_map/mapping_node --version >/dev/null || fail "the installed node does not run"
say "colcon: installed into $installed"
