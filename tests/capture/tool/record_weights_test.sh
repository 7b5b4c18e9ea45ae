#!/usr/bin/env bash
# record --weights: PyTorch's layouts and our own, each weight where it belongs, and errors that list what does not fit.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.tape ./*.safetensors
command -v python3 > /dev/null || finish

# The last layer is zero, so that the gradients of the others are zero and the recorded step leaves them as they were. Their element
# in row i and column j of [in,out] is i - j / 1024, which f32 holds; PyTorch's file has the transpose.
cat > weights.py << 'P'
import json, struct, sys
def save(path, tensors, metadata):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (kind, shape, values) in tensors.items():
        piece = struct.pack(f"<{len(values)}{'f' if kind == 'F32' else 'q'}", *values)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
def load(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    return {k: (t["shape"], struct.unpack(f"<{(t['data_offsets'][1] - t['data_offsets'][0]) // 4}f", raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]))
            for k, t in json.loads(raw[8:8 + n]).items() if k != "__metadata__" and t["dtype"] == "F32"}
sizes = {"fc1": (784, 256), "fc2": (256, 256), "fc3": (256, 10)}
value = lambda layer, i, j: 0.0 if layer == "fc3" else i - j / 1024
def net(ours):
    tensors = {}
    for layer, (a, b) in sizes.items():
        rows, columns = (a, b) if ours else (b, a)
        tensors[layer + ".weight"] = ("F32", [rows, columns], [value(layer, r, c) if ours else value(layer, c, r) for r in range(rows) for c in range(columns)])
        tensors[layer + ".bias"] = ("F32", [b], [0.0] * b)
    return tensors
if sys.argv[1] == "make":
    torch, ours = net(False), net(True)
    save("torch.safetensors", torch, {"format": "pt"})
    save("ours.safetensors", ours | {"fc1.weight.m": ours["fc1.weight"], "steps": ("I64", [], [7])}, {"tapedeck.weights": "1"})
    save("foreign.safetensors", {k: v for k, v in ours.items() if k != "fc3.bias"} | {"other": ours["fc1.bias"]}, {"tapedeck.weights": "1"})
    save("wrong.safetensors", {k: v for k, v in torch.items() if k != "fc3.bias"} | {"other": torch["fc1.bias"], "fc2.bias": torch["fc1.weight"]}, {})
    save("first.safetensors", {"conv1.weight": ("F32", [8, 3, 7, 7], [0.0] * 1176)}, {})
else:
    tape = load(sys.argv[2])
    for layer in ("fc1", "fc2"):
        a, b = sizes[layer]
        shape, values = tape[f"state/{layer}.weight"]
        assert shape == [a, b] and all(values[i * b + j] == value(layer, i, j) for i in range(a) for j in range(b)), layer
P
python3 weights.py make
for file in torch ours; do
  expect 0 record mlp --batch 2 --weights $file.safetensors -o $file.tape; quiet
  python3 weights.py check $file.tape || fail "the weights of $file are elsewhere"
done
cmp -s torch.tape ours.tape || fail "the same weights give two files"

# What does not fit is listed, for both kinds.
expect 3 record mlp --batch 2 --weights wrong.safetensors -o x.tape; absent x.tape
said 'wrong.safetensors: the weights do not fit'; said 'missing: "fc3.bias"'; said 'unexpected: "other"'; said '"fc2.bias" is f32[256,784] in the file, not f32[256]'; said "\"fc3.bias\": PyTorch's layer has bias=False"
expect 3 record mlp --batch 2 --weights foreign.safetensors -o x.tape; said 'missing: "fc3.bias"'; said 'unexpected: "other"'
expect 3 record mlp --weights missing.safetensors -o x.tape; said 'missing.safetensors'
expect 3 record mlp --weights weights.py -o x.tape; said 'weights.py'
expect 2 record mlp --abstract --weights torch.safetensors -o x.tape; said 'exclude each other'
cp ours.tape same.tape; expect 2 record mlp --weights same.tape -o same.tape; said 'same.tape'
# The names of torchvision: the one weight that is there is known, the others are missing.
expect 3 record resnet18 --batch 1 --image 32 --width 8 --weights first.safetensors -o x.tape
said 'missing: '; grep -q unexpected err && fail "a name of torchvision is unknown: $(cat err)"

# What this tool wrote: the whole tape, and the state alone, with moments and counters.
expect 0 record mlp --batch 2 --optimizer adamw -o a.tape; expect 0 replay a.tape --steps 2 -q --save s.safetensors
expect 0 record mlp --batch 2 --optimizer adamw --weights s.safetensors -o b.tape; expect 0 record mlp --batch 2 --weights a.tape -o c.tape
finish
