#!/usr/bin/env bash
# tapedeck replay --trace, --memory-trace: files that other programs read, whole or not at all.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.graph ./*.json ./*.pickle ./*.py

expect 0 record cnn --batch 4 -o c.tape
expect 0 plan c.tape --budget 80% -o p.tape --json
peak=$(number peak_bytes) bound=$(number lower_bound_bytes)
expect 0 replay p.tape --steps 2 --threads 1 --trace t.json --memory-trace m.pickle --check-eager; quiet; answered "equal to eager yes"
expect 0 replay p.tape --steps 2 --threads 2 --trace t2.json --memory-trace m.json
grep -q '"schema":"tapedeck.memory_trace/1"' m.json || fail "m.json has no schema"
grep -q "\"planned_peak_bytes\":$peak" m.json || fail "m.json lacks the peak $peak"
for file in t.json t2.json; do
  for word in '"ph":"X"' '"ph":"s"' '"ph":"f"' '"ph":"C"' 'thread_name' '"traceEvents":'; do grep -qF -- "$word" $file || fail "$file lacks $word"; done
done

# mistakes cost no work and leave nothing behind
expect 3 replay p.tape --trace /no/such/folder/t.json; said /no/such/folder
expect 3 replay p.tape --memory-trace /no/such/folder/t.pickle; said /no/such/folder
expect 2 replay p.tape --memory-trace m.txt; said "must end in .pickle"; absent m.txt
expect 3 replay missing.tape --trace no.json; absent no.json

if ! command -v python3 > /dev/null; then
  echo "no python3 here: the files were not read back by it"
  finish
fi
cat > read.py <<'P'
import json, pickle, sys
peak, bound = int(sys.argv[1]), int(sys.argv[2])

class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError("plain data names no class, but this: %s.%s" % (module, name))

s = Plain(open("m.pickle", "rb")).load()
frame_keys = {"name", "filename", "line"}
assert len(s["device_traces"]) == 1
assert sum(g["total_size"] for g in s["segments"]) == peak, "segments are not the peak"
assert all(g["device"] == 0 and g["stream"] == 0 and g["segment_type"] in ("small", "large") for g in s["segments"])
ends = sorted((g["address"], g["address"] + g["total_size"]) for g in s["segments"])
assert all(a[1] < b[0] for a, b in zip(ends, ends[1:])), "segments meet"
for g in s["segments"]:
    at = g["address"]
    for b in g["blocks"]:
        assert b["address"] == at and b["state"] in ("active_allocated", "active_awaiting_free", "inactive") and b["requested_size"] <= b["size"]
        at += b["size"]
    assert at == g["address"] + g["total_size"], "blocks do not fill their segment"
    assert g["allocated_size"] == sum(b["size"] for b in g["blocks"] if b["state"] == "active_allocated") == g["active_size"]

live, high, last, announced, pending, categories = {}, 0, 0, {}, None, set()
for t in s["device_traces"][0]:
    assert all(set(f) == frame_keys and isinstance(f["line"], int) for f in t["frames"])
    assert t["time_us"] >= last and t["stream"] == 0
    last, addr, size = t["time_us"], t["addr"], t["size"]
    categories.add(t["category"])
    if t["action"] == "segment_alloc":
        announced[addr] = size
    elif t["action"] == "alloc":
        assert size > 0 and len(t["frames"]) >= 1
        assert any(a <= addr and addr + size <= a + n for a, n in announced.items()), "outside of all segments"
        assert not any(a < addr + size and addr < a + n for a, n in live.items()), "overlaps what is live"
        live[addr] = size
        high = max(high, sum(live.values()))
    elif t["action"] == "free_requested":
        assert live[addr] == size
        pending = addr
    elif t["action"] == "free_completed":
        assert pending == addr and live.pop(addr) == size
    else:
        assert t["action"] == "snapshot"
assert t["action"] == "snapshot", "the snapshot comes last"
assert announced == {g["address"]: g["total_size"] for g in s["segments"]}
assert live == {g["address"]: g["total_size"] for g in s["segments"] if g["active_size"]}, "freed and held disagree with the blocks"
assert high == bound, "highest %d, lower bound %d" % (high, bound)
assert "unknown" in categories and {"activation", "parameter", "input", "gradient", "recomputed"} <= categories, categories
assert any(f["filename"] == "module" for t in s["device_traces"][0] for f in t["frames"])

for name in ("t.json", "t2.json"):
    trace = json.load(open(name))
    slices = {}
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            slices.setdefault(e["tid"], []).append((round(e["ts"] * 1000), -round(e["dur"] * 1000), e["name"]))
    for track in slices.values():
        stack = []
        for start, minus, what in sorted(track):
            while stack and stack[-1] <= start:
                stack.pop()
            assert not stack or start - minus <= stack[-1], "%s: %s sticks out" % (name, what)
            stack.append(start - minus)
    counts = [e["args"]["bytes"] for e in trace["traceEvents"] if e["ph"] == "C"]
    assert max(counts) == bound if name == "t.json" else max(counts) <= peak
    starts = {e["id"] for e in trace["traceEvents"] if e["ph"] == "s"}
    assert starts and starts == {e["id"] for e in trace["traceEvents"] if e["ph"] == "f"}
m = json.load(open("m.json"))
assert m["schema"] == "tapedeck.memory_trace/1" and sum(g["bytes"] for g in m["segments"]) == peak
P
python3 read.py "$peak" "$bound" 2> err || fail "python: $(tail -3 err)"
finish
