#!/bin/sh
# Builds the page from its sources into crates/page/built/page.html, or into the file that is named.
set -eu
cd "$(dirname "$0")"
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --ignore-scripts --silent
node contract.mjs
npx --no-install tsc --noEmit
npx --no-install vite build --logLevel error
node embed.mjs "$@"
