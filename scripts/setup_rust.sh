#!/usr/bin/env bash
# Makes sure of Rust 1.92 or newer: the one on PATH, else Debian's rustc-web and cargo-web when run as root.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

MINIMUM_MINOR=92

rust_is_new_enough() {
    local version
    command -v cargo >/dev/null || return 1
    version=$(rustc --version 2>/dev/null) || return 1
    [[ $version =~ ^rustc\ 1\.([0-9]+)\. ]] && [ "${BASH_REMATCH[1]}" -ge $MINIMUM_MINOR ]
}

if ! rust_is_new_enough; then
    apt_install rustc-web cargo-web || true
    hash -r
fi
rust_is_new_enough || fail "Rust 1.$MINIMUM_MINOR or newer is needed (found: $(rustc --version 2>/dev/null || echo none)).
   Debian: apt-get install rustc-web cargo-web
   anywhere: install rustup, then: rustup toolchain install stable"
for tool in gcc g++; do
    command -v $tool >/dev/null && continue
    apt_install gcc g++ libc6-dev || true
    command -v $tool >/dev/null || fail "a C and C++ compiler is needed: apt-get install gcc g++ libc6-dev"
done
say "$(rustc --version | cut -d' ' -f1,2)"
