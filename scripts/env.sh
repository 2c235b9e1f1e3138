# Sourced by the other scripts: where things are, how they speak, and the environment a build or a run needs.
# Nothing here installs anything.

PROJECT_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ROS_PREFIX=$PROJECT_ROOT/.ros
ONNXRUNTIME_DIR=$PROJECT_ROOT/.onnxruntime
TEST_VENV=$PROJECT_ROOT/.venv-test

say() { printf '%s %s\n' "--" "$*"; }
warn() { printf '%s %s\n' "--" "warning: $*" >&2; }
fail() {
    printf '%s %s\n' "--" "error: $*" >&2
    exit 1
}

is_root() { [ "$(id -u)" = 0 ]; }

# apt_install PACKAGE...: true when apt-get could install them (root on a Debian or Ubuntu only).
apt_install() {
    is_root && command -v apt-get >/dev/null || return 1
    say "installing with apt-get: $*"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } \
        >/dev/null 2>&1
}

# run_logged LOG COMMAND...: quiet on success, the end of the log on failure.
run_logged() {
    local log=$1
    shift
    if ! "$@" >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        return 1
    fi
}

# A ROS 2 of the machine, sourced in this shell.
ros_is_sourced() {
    [ -n "${AMENT_PREFIX_PATH:-}" ] || return 1
    case "${ROS_DISTRO:-}" in
    jazzy | humble) [ "${AMENT_PREFIX_PATH%%:*}" != "$ROS_PREFIX" ] ;;
    *) return 1 ;;
    esac
}

# Exports what building and running against ROS 2 needs. Fails when there is no ROS 2: run setup_ros.sh first.
use_ros() {
    if ros_is_sourced; then
        ROS_PYTHON=$(command -v python3)
    elif [ -f "$ROS_PREFIX/complete" ]; then
        ROS_PYTHON=$ROS_PREFIX/bin/python3
        export ROS_DISTRO=jazzy ROS_VERSION=2 ROS_PYTHON_VERSION=3
        export AMENT_PREFIX_PATH=$ROS_PREFIX CMAKE_PREFIX_PATH=$ROS_PREFIX
        export RMW_IMPLEMENTATION=rmw_fastrtps_cpp
        # The wheels carry a .pth file that otherwise re-executes every Python of the prefix.
        export _ROS_WHEELS_BOOTSTRAP_COMPLETE=1
        case ":${LD_LIBRARY_PATH:-}:" in
        *":$ROS_PREFIX/lib:"*) ;;
        *) export LD_LIBRARY_PATH=$ROS_PREFIX/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ;;
        esac
        case ":$PATH:" in
        *":$ROS_PREFIX/bin:"*) ;;
        *) export PATH=$PATH:$ROS_PREFIX/bin ;;
        esac
        # bindgen: the libclang wheel has no compiler headers of its own, gcc's serve.
        LIBCLANG_PATH=$(echo "$ROS_PREFIX"/lib/python3.*/site-packages/clang/native)
        BINDGEN_EXTRA_CLANG_ARGS="-I$(gcc -print-file-name=include)"
        export LIBCLANG_PATH BINDGEN_EXTRA_CLANG_ARGS
    else
        warn "no ROS 2: source one (jazzy or humble) or run scripts/setup_ros.sh"
        return 1
    fi
    export ROS_PYTHON
}

# Exports where the ONNX Runtime library lies; one named by the caller stays.
use_onnxruntime() {
    # Tests and benches are programs of their own: see src/runtime/telemetry.rs.
    export ORT_DISABLE_TELEMETRY=1 ORT_TELEMETRY_DISABLED=1
    if [ -z "${ORT_DYLIB_PATH:-}" ]; then
        local library
        library=$(echo "$ONNXRUNTIME_DIR"/libonnxruntime.so.*)
        if [ ! -f "$library" ]; then
            warn "no ONNX Runtime: run scripts/setup_onnxruntime.sh or set ORT_DYLIB_PATH"
            return 1
        fi
        export ORT_DYLIB_PATH=$library
    fi
}

# find_python MODULE...: prints the first Python 3.10 to 3.13 that has these modules.
find_python() {
    local modules=$1 candidate
    for candidate in python3.11 python3.12 python3.10 python3.13 python3 "$HOME"/.pyenv/versions/3.1[0-3]*/bin/python3; do
        candidate=$(command -v "$candidate") || continue
        if "$candidate" -c "import sys, $modules; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))" \
            >/dev/null 2>&1; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

# loader_has NAME: whether the dynamic loader knows a library. (No pipe: with pipefail a reader that stops early fails it.)
loader_has() {
    [[ $(ldconfig -p) == *$'\t'"$1"* ]]
}

# play_launch runs launch files where ros2 launch is not: prints the folders of the libraries that it needs, or fails.
play_launch_libraries() {
    command -v play_launch >/dev/null || return 1
    loader_has "libz3.so.4 " || return 1
    local name=libpython3.10.so.1.0 folder
    loader_has "$name " && return 0
    for folder in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.10*/lib /usr/local/lib; do
        if [ -e "$folder/$name" ]; then
            echo "$folder"
            return 0
        fi
    done
    return 1
}
