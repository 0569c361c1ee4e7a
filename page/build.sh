#!/bin/sh
# Builds the page from its sources into crates/page/built/page.html, or into the file that is named.
set -eu
cd "$(dirname "$0")"
if ! [ node_modules/.package-lock.json -nt package-lock.json ]; then
    # The network may fail once.
    npm ci --ignore-scripts --silent || npm ci --ignore-scripts --silent || npm ci --ignore-scripts
fi
node contract.mjs
npx --no-install tsc --noEmit
npx --no-install vite build --logLevel error
node embed.mjs "$@"
