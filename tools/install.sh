#!/bin/sh
# Installs the programs that the tests record and compare with, where that is possible without asking: as root, on a
# system with apt-get. Elsewhere it names what is missing; the tests that need it then say that they skip, and why.
set -eu

missing=""
need() { # PROGRAM PACKAGE
    command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || missing="$missing $2"
}
need tshark tshark
need tcpdump tcpdump
need nginx nginx-light
need redis-server redis-server
need memcached memcached
need apache2 apache2
need curl curl
need java default-jdk-headless
need valgrind valgrind
need tcptrace tcptrace
need xz xz-utils
need lz4 lz4
need zstd zstd
need chromium chromium
need node nodejs
need npm npm
python3 -c "import ensurepip" 2>/dev/null || missing="$missing python3-venv"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing with apt-get, for the tests:$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086  # a list of packages
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
elif [ "${CI:-}" = true ]; then
    echo "missing:$missing; in CI every test must run" >&2
    exit 1
else
    echo "not installed:$missing; tests that need them are skipped and say so"
    if command -v apt-get >/dev/null 2>&1; then
        echo "to install: sudo apt-get install$missing"
    else
        echo "these are Debian's names of the packages; there is no apt-get here"
    fi
fi
