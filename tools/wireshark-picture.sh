#!/bin/sh
# Opens an annotated capture in Wireshark with the profile of tcpwhy, on a screen of its own (Xvfb), and takes the picture of
# docs/wireshark.md. Needs wireshark, xvfb, xdotool and imagemagick, and tcpwhy in target/release.
set -eu
cd "$(dirname "$0")/.."
to=$PWD/docs/pictures/wireshark.png
tcpwhy=$PWD/target/release/tcpwhy
for program in wireshark Xvfb xdotool import; do
    command -v $program >/dev/null || { echo "$program is missing: apt-get install wireshark xvfb xdotool imagemagick" >&2; exit 1; }
done
work=$(mktemp -d)
screen=""
wireshark=""
trap 'for process in $wireshark $screen; do kill "$process" 2>/dev/null || true; done; rm -rf "$work"' EXIT
cp corpus/demo/split.pcapng "$work/slow.pcapng"
export HOME="$work" XDG_CONFIG_HOME="$work/.config" XDG_RUNTIME_DIR="$work"
"$tcpwhy" wireshark-profile "$work/.config/wireshark/profiles/tcpwhy"
(cd "$work" && "$tcpwhy" read slow.pcapng --annotate why.pcapng --brief)
# A number of a screen that nobody has: Xvfb says which one it took.
Xvfb -displayfd 3 -screen 0 1500x760x24 3>"$work/display" 2>"$work/xvfb.log" &
screen=$!
for _ in $(seq 50); do [ -s "$work/display" ] && break; sleep 0.2; done
DISPLAY=:$(cat "$work/display")
export DISPLAY
(cd "$work" && exec wireshark -C tcpwhy -o gui.update.enabled:FALSE -g 11 why.pcapng >"$work/wireshark.log" 2>&1) &
wireshark=$!
# The capture is open once the title has its name.
for _ in $(seq 150); do
    window=$(xdotool search --onlyvisible --name '^why\.pcapng' 2>/dev/null | head -1) || true
    [ -n "$window" ] && break
    sleep 0.4
done
[ -n "$window" ] || { cat "$work/wireshark.log" >&2; exit 1; }
xdotool windowsize "$window" 1500 760
xdotool windowmove "$window" 0 0
sleep 3
mkdir -p "$(dirname "$to")"
import -window root -strip -depth 8 +dither -colors 48 "PNG8:$to"
echo "$to"
