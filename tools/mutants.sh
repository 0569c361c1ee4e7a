#!/bin/sh
# Changes the rules one place at a time and asks the engine's tests whether they notice (docs/mutants.md).
# tools/mutants.sh [FILE...] takes rule files by their names ("nagle.rs cork.rs"); without one it takes them all.
# What came out stays below target/mutants.out: caught.txt, missed.txt, timeout.txt, unviable.txt and a log for each.
# Exits with an error where the tests could not be asked, not where a mutant survives.
set -eu
cd "$(dirname "$0")/.."

rules=crates/core/src/rules
jobs=${MUTANTS_JOBS:-1}

command -v cargo-mutants >/dev/null 2>&1 || cargo install --quiet --locked cargo-mutants
[ "$#" -gt 0 ] || set -- '*.rs'
for name; do
    shift
    set -- "$@" --file "$rules/$name"
done
# The properties find what a log does not; here they only have to refute, once for each of many mutants.
PROPTEST_CASES=${PROPTEST_CASES:-16}
export PROPTEST_CASES
status=0
cargo mutants --output target --jobs "$jobs" --no-times --colors never "$@" -- --lib --test engine || status=$?
case $status in
0 | 2 | 3) ;; # 2: some survived, 3: some ran for too long
*) exit "$status" ;;
esac

cd target/mutants.out
for outcome in caught missed timeout unviable; do
    echo "$outcome: $(wc -l <"$outcome.txt")"
done
echo "survivors:"
cat missed.txt
