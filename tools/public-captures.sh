#!/bin/sh
# Fetches the captures of tools/public-captures.txt, or of another list, into a directory (target/public-captures unless another
# is given) and checks them. What is there already and right is left alone, so that the directory can also be filled by hand: each
# capture is at OWNER/NAME/PATH in it.
#
#     tools/public-captures.sh [DIRECTORY [LIST]]
set -eu

here=$(dirname "$0")
to=${1:-$here/../target/public-captures}
list=${2:-$here/public-captures.txt}
wrong=0
while read -r sum repository commit path; do
    case $sum in "#"*) continue ;; esac
    file=$to/$repository/$path
    if [ -f "$file" ] && echo "$sum  $file" | sha256sum --check --status; then
        continue
    fi
    mkdir -p "$(dirname "$file")"
    url=https://raw.githubusercontent.com/$repository/$commit/$(printf %s "$path" | sed 's/%/%25/g; s/ /%20/g; s/#/%23/g')
    echo "$url"
    if ! curl --fail --silent --show-error --location --retry 3 --output "$file.part" "$url"; then
        wrong=$((wrong + 1))
    elif echo "$sum  $file.part" | sha256sum --check --status; then
        mv "$file.part" "$file"
    else
        echo "$url: not the file whose sum is in the list" >&2
        wrong=$((wrong + 1))
    fi
done <"$list"
[ "$wrong" -eq 0 ] || echo "$wrong captures are missing below $to" >&2
[ "$wrong" -eq 0 ]
