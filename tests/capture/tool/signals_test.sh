#!/usr/bin/env bash
# Signals that end the tool while it writes: no temporary files stay, and a limit on the size of files is an error like a full disk.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -rf work; mkdir work
expect 0 record mlp --batch 64 -o m.tape

# begin [IGNORED]: a long replay whose temporary file is there; it ignores this signal. Under nohup this shell ignores SIGHUP and cannot take that
# back, so env does: else the replay would not end by it.
begin() {
  (trap '' "${1:-CONT}"; heard=(env --default-signal=HUP); [ "${1:-}" = HUP ] && heard=(); exec "${heard[@]}" "$tool" replay m.tape --steps 100000000 --threads 1 --trace work/t.json > out 2> err) & pid=$!
  for ((tries = 0; tries < 600; ++tries)); do
    [ -n "$(ls -A work)" ] && return
    sleep 0.1
  done
  fail "the replay has not opened its trace"
}
# ended CODE WHAT: it ends with this code, and leaves nothing.
ended() {
  wait "$pid" 2> /dev/null; code=$?
  [ $code = "$1" ] || fail "$2: exited $code, not $1"
  [ -z "$(ls -A work)" ] || fail "$2: left $(ls -A work)"
  rm -rf work; mkdir work
}

for signal in TERM HUP; do
  begin; kill -$signal "$pid"; ended $((128 + $(kill -l $signal))) $signal
done
begin; kill -INT "$pid"; kill -INT "$pid"; ended 130 "Ctrl-C, twice"

# Only SIGKILL leaves a file, which the next write removes.
begin; kill -KILL "$pid"; wait "$pid" 2> /dev/null
[ "$(ls -A work | wc -l)" = 1 ] || fail "killed, there is: $(ls -A work)"
expect 0 replay m.tape --trace work/t.json
[ "$(ls -A work)" = t.json ] || fail "after the next write: $(ls -A work)"

# Under nohup a hangup does not end it.
rm -rf work; mkdir work
begin HUP; kill -HUP "$pid"; kill -TERM "$pid"; ended 143 "SIGHUP under nohup, then SIGTERM"

# A limit on the size of files: 3, for a file and for stdout, and the old file as it was.
cp m.tape work/kept.tape
(ulimit -f 64; "$tool" record mlp --batch 8 -o work/kept.tape > /dev/null 2> err); code=$?
[ $code = 3 ] || fail "a limit on files: exited $code"
said "work/kept.tape: cannot write: File too large"
cmp -s m.tape work/kept.tape || fail "the old file has changed"
(ulimit -f 1; "$tool" ops --json > work/stdout 2> err); code=$?
[ $code = 3 ] || fail "a limit on stdout: exited $code"
said "stdout: cannot write: File too large"

# Links are followed, also to a file that is not there yet. Long names are written.
ln -s there.tape work/link.tape
expect 0 record mlp --abstract -o work/link.tape
[ -L work/link.tape ] && [ -f work/there.tape ] || fail "the dangling link: $(ls -l work)"
name=$(printf 'n%.0s' $(seq 245)).tape
expect 0 record mlp --abstract -o "work/$name"
[ -f "work/$name" ] || fail "a name of 250 bytes"
finish
