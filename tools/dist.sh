#!/bin/sh
# Builds tcpwhy as people get it: `tools/dist.sh build` prints where it is, `tools/dist.sh install` puts it into ~/.cargo/bin.
# The compiler is told how often each branch of the analysis runs (profile-guided optimisation): over generated captures of each
# shape, and over the corpus, so that what rare packets need is not made slow. docs/performance.md says what that is worth.
set -eu
cd "$(dirname "$0")/.."
what=$1
cargo=${CARGO:-cargo}
host=$(rustc -vV | sed -n 's/^host: //p')
merge="$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata"
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
counts=$target/counts
flags=${RUSTFLAGS:-}

# The component belongs to the toolchain that rustup keeps for this user; only CI adds to it unasked.
[ -x "$merge" ] || [ "${CI:-}" != true ] || rustup component add llvm-tools >&2 || true
if [ ! -x "$merge" ]; then
    echo "built without a profile, about a tenth slower: there is no llvm-profdata; \`rustup component add llvm-tools\` adds it" >&2
elif ! command -v zstd >/dev/null 2>&1; then
    echo "built without a profile, about a tenth slower: zstd, which unpacks the corpus, is missing" >&2
else
    rm -rf "$counts"
    mkdir -p "$counts/captures"
    # Both packages, so that the libraries have the features that the program gives them.
    RUSTFLAGS="$flags -Cprofile-generate=$counts" "$cargo" build --locked --profile dist --target "$host" \
        -p tcpwhy -p tcpwhy-core --example analysis
    find corpus -name '*.zst' | while read -r capture; do
        zstd -dq "$capture" -o "$counts/captures/$(echo "${capture%.zst}" | tr / -)"
    done
    for shape in rpc bulk bulk-full churn; do
        "$target/$host/dist/examples/analysis" $shape 300000 >/dev/null
    done
    "$target/$host/dist/examples/analysis" bills "$counts"/captures/* >/dev/null
    "$merge" merge -o "$counts/merged" "$counts"/*.profraw
    # All crates are built anew behind a newer file.
    cmp -s "$counts/merged" "$target/analysis.profdata" || mv "$counts/merged" "$target/analysis.profdata"
    rm -rf "$counts"
    flags="$flags -Cprofile-use=$target/analysis.profdata"
fi
if [ "$what" = install ]; then
    RUSTFLAGS=$flags "$cargo" install --locked --profile dist --target "$host" --path crates/tcpwhy
else
    RUSTFLAGS=$flags "$cargo" build --locked --profile dist --target "$host" -p tcpwhy
    echo "$target/$host/dist/tcpwhy"
fi
