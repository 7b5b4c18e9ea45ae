#!/usr/bin/env bash
# Runs the tests of OpenGL on a display of their own: Xvfb, where Mesa draws on a machine without a GPU.
set -euo pipefail

tests=$(dirname "$TAPEDECK_TOOL")/tests_viewer
if [ ! -x "$tests" ]; then
  echo "skipped: this build has no viewer"
  exit 0
fi
if ! command -v Xvfb > /dev/null; then
  echo "skipped: there is no Xvfb"
  exit 0
fi

rm -rf runtime display
mkdir -m 700 runtime
Xvfb -displayfd 3 -screen 0 1280x800x24 -nolisten tcp -noreset 3> display 2> xvfb.log &
server=$!
trap 'kill $server; wait $server || true' EXIT
for ((i = 0; i < 300; ++i)); do
  [ -s display ] && break
  kill -0 $server 2> /dev/null || break
  sleep 0.1
done
if [ ! -s display ]; then
  echo "skipped: Xvfb does not start here"
  cat xvfb.log
  exit 0
fi

unset WAYLAND_DISPLAY
DISPLAY=:$(cat display) XDG_RUNTIME_DIR=$PWD/runtime
export DISPLAY XDG_RUNTIME_DIR QT_QPA_PLATFORM=xcb LIBGL_ALWAYS_SOFTWARE=1
# Drivers of OpenGL keep memory until the process ends. libxkbcommon copies a text of known length that no zero ends, which the
# strict check of strings takes for a read beyond its end.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:strict_string_checks=0"
"$tests" --gtest_filter='OpenGl.*' --gtest_brief=1 2>&1 | tee output
if grep -q SKIPPED output; then
  echo "the tests found no display"
  exit 1
fi
