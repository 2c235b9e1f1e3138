#!/usr/bin/env bash
# Plays a camera through ROS, maps its images with the node, saves the map and says what was measured.
#   scripts/demo.sh          a walk through a computed room, with the demo model and the truth to compare with
#   scripts/demo.sh DIR      the JPEG or PNG images of a folder, in the order of their names
# MODEL=PATH takes another model (an exported folder or a checkpoint), RATE=HZ another rate, OUTPUT=DIR another place;
# for the walk SEED=N takes another one and FRAMES=N another length.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

DEMO=$PROJECT_ROOT/models/demo
IMAGES=
[ $# = 0 ] || IMAGES=$(realpath -e "$1" 2>/dev/null) || fail "there is no folder $1"
asked=${MODEL:-$DEMO/weights.safetensors}
MODEL=$(realpath -e "$asked" 2>/dev/null) || fail "there is no model $asked"
RATE=${RATE:-10}
FRAMES=${FRAMES:-300}
SEED=${SEED:-1}
mkdir -p "${OUTPUT:-$PROJECT_ROOT/demo-output}"
OUTPUT=$(realpath "${OUTPUT:-$PROJECT_ROOT/demo-output}")
cd "$PROJECT_ROOT"

for setup in rust onnxruntime ros; do
    scripts/setup_$setup.sh
done
use_ros
use_onnxruntime

say "building (the first time takes some minutes)"
cargo build --release --locked --bins
INSTALL=$PROJECT_ROOT/target/install
say "installing into target/install"
run_logged target/install.log scripts/install.sh "$INSTALL" || fail "the package could not be installed into target/"
export AMENT_PREFIX_PATH=$INSTALL:$AMENT_PREFIX_PATH

# This demo stays on this machine and away from a robot that may run beside it.
export ROS_DOMAIN_ID=${ROS_DOMAIN_ID:-$((100 + $$ % 100))}
if [ "$ROS_DISTRO" = humble ]; then
    export ROS_LOCALHOST_ONLY=1
else
    export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST
fi
export FASTRTPS_DEFAULT_PROFILES_FILE=${FASTRTPS_DEFAULT_PROFILES_FILE:-$PROJECT_ROOT/config/fastdds.xml}

start_node() {
    local log=$OUTPUT/node.log
    local arguments=(image_topic:=/image model:="$MODEL" output_dir:="$OUTPUT")
    if ros2 launch --help >/dev/null 2>&1; then
        say "starting the node with ros2 launch"
        ros2 launch lingbot_map mapping.launch.py "${arguments[@]}" >"$log" 2>&1 &
    elif libraries=$(play_launch_libraries); then
        say "starting the node with play_launch"
        (cd "$OUTPUT" && LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec play_launch launch \
            lingbot_map mapping.launch.py "${arguments[@]}" --disable-all) >"$log" 2>&1 &
    else
        say "starting the node itself (no launch program can run here)"
        "$INSTALL/lib/lingbot_map/mapping_node" --ros-args --params-file config/mapping.yaml \
            -p image_topic:=/image -p model:="$MODEL" -p output_dir:="$OUTPUT" >"$log" 2>&1 &
    fi
    NODE=$!
}

stop_node() {
    kill -TERM "$NODE" 2>/dev/null || true
    wait "$NODE" 2>/dev/null || true
}

# What the node said: by itself, or kept by play_launch.
show_log() {
    tail -n 20 "$OUTPUT/node.log" "$OUTPUT"/play_log/latest/node/lingbot_map/{out,err} >&2 2>/dev/null || true
}

# A launch program can outlive its node: a node that gave up is known by its last word.
node_failed() {
    ! kill -0 "$NODE" 2>/dev/null || grep -qs '^error:' "$OUTPUT"/play_log/latest/node/lingbot_map/err
}

PLAYER=
stop_all() {
    [ -z "$PLAYER" ] || kill -TERM "$PLAYER" 2>/dev/null || true
    stop_node
}

trap stop_all EXIT
trap 'exit 130' INT TERM
rm -rf "$OUTPUT/play_log"
start_node
if [ -n "$IMAGES" ]; then
    say "playing $(find "$IMAGES" -maxdepth 1 -type f | wc -l) images at $RATE a second"
    target/release/camera_player "$IMAGES" --rate "$RATE" --figures "$OUTPUT/figures.json" &
else
    say "walking through the room: $FRAMES images at $RATE a second"
    target/release/world_camera --frames "$FRAMES" --rate "$RATE" --seed "$SEED" --truth "$OUTPUT/truth" \
        --figures "$OUTPUT/figures.json" &
fi
PLAYER=$!
ended=0
while kill -0 "$PLAYER" 2>/dev/null && ! node_failed; do
    sleep 0.5
done
if kill -0 "$PLAYER" 2>/dev/null; then
    ended=1
else
    wait "$PLAYER" || ended=$?
    PLAYER=
fi
if [ $ended != 0 ]; then
    show_log
    fail "the demo did not come to its end; what the node said is above"
fi
stop_all
trap - EXIT INT TERM

MAP=$(sed -n 's/^ *"map": "\(.*\)",\{0,1\}$/\1/p' "$OUTPUT/figures.json")
if [ -z "$IMAGES" ]; then
    say "path and map against the truth"
    target/release/lingbot_map evaluate --map "$MAP/map.ply" --trajectory "$MAP/trajectory.tum" \
        --truth "$OUTPUT/truth" --plot "$MAP/path.png" | sed 's/^/   /'
    say "plot:    $MAP/path.png"
fi
say "map:     $MAP/map.ply"
say "path:    $MAP/trajectory.tum"
say "picture: $MAP/preview.png"
if [ "$MODEL" = "$DEMO/weights.safetensors" ]; then
    say "The demo model knows one synthetic room and nothing else: of other images it makes nonsense that only shows"
    say "that the path from camera to map works. Real scenes need the official checkpoint: MODEL=/path/to/it scripts/demo.sh DIR"
fi
