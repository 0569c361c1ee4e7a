#!/bin/sh
# Runs every fuzz target for SECONDS each (tools/fuzz.sh [SECONDS [TARGET...]]), as many at a time as there are cores, beginning
# with the committed corpus; what a run finds worth keeping goes below fuzz/target, not into the repository. Exits with an
# error at the first finding. With `build` for SECONDS it only builds them.
# Sanitizers are not stable yet: RUSTC_BOOTSTRAP lets the project's own compiler build them, so no other one is needed.
set -eu
cd "$(dirname "$0")/../fuzz"

seconds=${1:-120}
[ "$#" -eq 0 ] || shift
command -v cargo-fuzz >/dev/null 2>&1 || cargo install --quiet --locked cargo-fuzz
RUSTC_BOOTSTRAP=1
export RUSTC_BOOTSTRAP
cargo fuzz build
[ "$seconds" != build ] || exit 0

try() {
    grown=target/grown/$1
    mkdir -p "$grown"
    # The last lines say executions, coverage and memory; the thousands before them matter only after a finding.
    log=target/grown/$1.log
    if ! cargo fuzz run "$1" "$grown" "corpus/$1" -- -max_total_time="$seconds" -max_len=4096 -timeout=20 \
        -print_final_stats=1 >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        return 1
    fi
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "fuzz $1: $runs executions in $seconds s, $edges edges, no finding"
}

[ "$#" -gt 0 ] || set -- $(cargo fuzz list)
cores=$(nproc 2>/dev/null || echo 1)
found=0
while [ "$#" -gt 0 ] && [ "$found" = 0 ]; do
    running=
    for _ in $(seq "$cores"); do
        [ "$#" -gt 0 ] || break
        try "$1" &
        running="$running $!"
        shift
    done
    for run in $running; do
        wait "$run" || found=1
    done
done
exit "$found"
