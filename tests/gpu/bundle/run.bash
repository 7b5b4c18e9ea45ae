#!/usr/bin/env bash
# Checks Tapedeck on the GPU of this machine: run.sh [OUT] [PART...]
#
#   check     gpu_check: every kernel and the replays against the CPU
#   replay    the tool replays recorded steps on the GPU and on the CPU
#   bench     gpu_bench: W1 to W6, and single kernels
#   peers     the same workloads in PyTorch
#   sanitize  compute-sanitizer (memcheck, racecheck) over the tests San*
#   profile   the time of each kernel in a step of W2 to W6, by ncu; runs only where it is named
#   engines   gpu_bench: every way to compute the convolutions of ResNet; runs only where it is named
#
# Without parts all of them but profile and engines, in less than nine minutes. OUT (default: ./out) gets results.json and log.txt. A part that fails does not stop the others.
# The exit code is 1 if a part failed, and 6 if there is no GPU.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-./out}
shift || true
parts=("$@")
((${#parts[@]})) || parts=(check replay bench peers sanitize)
for part in "${parts[@]}"; do
  case $part in check | replay | bench | peers | sanitize | profile | engines) ;; *)
    echo "run.sh: no part '$part' (check replay bench peers sanitize profile engines)" >&2
    exit 2
    ;;
  esac
done

# The programs and their libraries lie in archives. Where there is no xz, python3 unpacks them.
for archive in libraries programs; do
  packed=$here/$archive.tar.xz
  if [ -f "$packed" ] && [ ! "$here/.$archive" -nt "$packed" ]; then
    tar xJf "$packed" -C "$here" 2> /dev/null ||
      python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1], "r:xz").extractall(sys.argv[2])' "$packed" "$here" || exit 1
    touch "$here/.$archive"
  fi
done
# Behind the libraries of the bundle come those of NVIDIA: the wheels of Python, and the toolkit.
before=${LD_LIBRARY_PATH:-}
wheels=$(python3 -c 'import glob, sys; print(":".join(sorted({d for s in sys.path if s for d in glob.glob(s + "/nvidia/*/lib")})))' 2> /dev/null)
export LD_LIBRARY_PATH="$here/lib${wheels:+:$wheels}:/usr/local/cuda/lib64${before:+:$before}"

device=$("$here/bin/gpu_bench" --probe 2>&1)
code=$?
if [ $code != 0 ]; then
  printf 'run.sh: %s\n' "$(head -1 <<< "$device")" >&2
  exit $code
fi

mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
log=$out/log.txt
: > "$log"
rm -f "$out"/part.*
export TAPEDECK_REQUIRE_GPU=1 TAPEDECK_CALIBRATION=off PYTHONUNBUFFERED=1
say() { printf '%s\n' "$*" | tee -a "$log"; }
say "$device"
python3 "$here/checks.py" info "$out/part.info.json" 2>&1 | tee -a "$log"

failed=()
began=$SECONDS
# part NAME LIMIT COMMAND...: runs the command with a limit in seconds.
part() {
  local name=$1 limit=$2 start=$SECONDS code
  shift 2
  say "==== $name"
  timeout --kill-after=5 "$limit" "$@" 2>&1 | tee -a "$log"
  code=${PIPESTATUS[0]}
  [ "$code" = 124 ] && say "$name: stopped after $limit s"
  [ "$code" = 0 ] || failed+=("$name ($code)")
  say "==== $name: exit $code, $((SECONDS - start)) s"
  printf '{"exit": %d, "seconds": %d}\n' "$code" $((SECONDS - start)) > "$out/part.time.$name.json"
}
for name in "${parts[@]}"; do
  case $name in
    check) part check 160 python3 "$here/checks.py" check "$here/bin/gpu_check" "$out/part.check.json" "$log" --seconds 150 ;;
    replay) part replay 60 python3 "$here/checks.py" replay "$here" "$out/part.replay.json" "$log" --seconds 55 ;;
    bench) part bench 100 "$here/bin/gpu_bench" --json "$out/part.bench.jsonl" --seconds 90 ;;
    peers) part peers 130 env LD_LIBRARY_PATH="$before" python3 "$here/peers.py" --json "$out/part.peers.jsonl" --seconds 115 ;;
    sanitize) part sanitize 90 python3 "$here/checks.py" sanitize "$here/bin/gpu_check" "$out/part.sanitize.json" "$log" --seconds 80 ;;
    engines) part engines 60 "$here/bin/gpu_bench" --engines --json "$out/part.engines.jsonl" --seconds 28 ;;
    profile) part profile 100 python3 "$here/checks.py" profile "$here/bin/gpu_bench" "$out/part.profile.json" "$log" --seconds 90 ;;
  esac
done
say "==== all parts: $((SECONDS - began)) s"
python3 "$here/checks.py" merge "$out" 2>&1 | tee -a "$log"
if ((${#failed[@]})); then
  say "failed: ${failed[*]}"
  exit 1
fi
say "no part failed"
