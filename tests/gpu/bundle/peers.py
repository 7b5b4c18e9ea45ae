#!/usr/bin/env python3
"""The workloads W1 to W6 of gpu_bench in PyTorch: eager, torch.compile, its mode reduce-overhead, and a CUDA graph of the whole
step captured by hand.

  peers.py [--json FILE] [--seconds S] [--compile-seconds S] [--only TEXT]

Each line of the file has the fields of gpu_bench's lines. A way that fails or finds no time is a line that says so.
"""
import argparse
import json
import statistics
import sys
import time

WAYS = ("eager", "graph", "compile", "reduce-overhead")


class Rows:
    def __init__(self, path):
        self.file = open(path, "w") if path else None
        self.failures = 0

    def write(self, row, text):
        print(text, flush=True)
        if self.file:
            self.file.write(json.dumps(row) + "\n")
            self.file.flush()

    def add(self, name, way, times):
        self.write({"bench": name, "what": way, **times},
                   f"{name:<24} {way:<16} {times['us']:>11.2f} us  [{times['low']:.2f} .. {times['high']:.2f}]  launch {times['launch_us']:.2f}" +
                   (f"  peak {times['peak_bytes'] / 2**20:.1f} MiB" if "peak_bytes" in times else ""))

    def failed(self, name, way, why):
        self.failures += 1
        why = " ".join(str(why).split())[:300]
        self.write({"bench": name, "what": way, "failed": why}, f"{name:<24} {way:<16} FAILED: {why}")


def measure(torch, run, seconds=1.5, round_ms=150):
    """Seven rounds, each between two synchronisations; at least three."""
    begin = time.perf_counter()
    for _ in range(2):
        run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    once = max(time.perf_counter() - start, 5e-7)
    runs = min(max(int(round_ms / 1000 / once), 3), 2000)
    times, launches = [], []
    while len(times) < 3 or (len(times) < 7 and time.perf_counter() - begin < seconds):
        start = time.perf_counter()
        for _ in range(runs):
            run()
        launches.append((time.perf_counter() - start) / runs * 1e6)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / runs * 1e6)
    return {"us": statistics.median(times), "low": min(times), "high": max(times), "launch_us": statistics.median(launches),
            "rounds": len(times), "runs": runs}


def workloads(torch):
    nn, F = torch.nn, torch.nn.functional
    device = "cuda"

    def training(net, loss, inputs, dtype=None):
        """One step: forward under autocast if there is a dtype, backward, and fused Adam."""
        net = net.to(device)
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True, capturable=True)

        def forward():
            if dtype is None:
                return loss(net, *inputs)
            with torch.autocast("cuda", dtype=dtype):
                return loss(net, *inputs)

        def step(forward=forward):
            value = forward()
            value.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return value

        return forward, step

    def adds():
        x, s = torch.randn(4096, device=device), torch.randn(4096, device=device)

        def run():
            y = x
            for _ in range(100):
                y = y + s
            return y

        return run, None

    def chain():
        x = torch.randn(64, 1024, 1024, device=device)

        def run():
            y = torch.tanh(x * 0.5 + 1.0)
            y = torch.relu(y - 0.25)
            return torch.sigmoid(y * 1.5) * 2.0

        return run, None

    def perceptron():
        net = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                            nn.Linear(256, 10))
        x, y = torch.randn(64, 256, device=device), torch.randint(0, 10, (64,), device=device)
        return training(net, lambda net, x, y: F.cross_entropy(net(x), y), (x, y))

    class GruNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru, self.head = nn.GRU(256, 256), nn.Linear(256, 10)

        def forward(self, x):
            return self.head(self.gru(x)[1][0])

    def recurrent():
        x, y = torch.randn(64, 32, 256, device=device), torch.randint(0, 10, (32,), device=device)
        return training(GruNet(), lambda net, x, y: F.cross_entropy(net(x), y), (x, y))

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, w = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, t, w))
            return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))

    class Transformer(nn.Module):
        def __init__(self, words=1024, width=256):
            super().__init__()
            self.words, self.positions = nn.Embedding(words, width), nn.Parameter(torch.randn(128, width) * 0.01)
            self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(4)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

        def forward(self, tokens):
            return self.head(self.norm(self.blocks(self.words(tokens) + self.positions))).flatten(0, 1)

    def transformer(dtype):
        tokens, following = (torch.randint(0, 1024, (8, 128), device=device) for _ in range(2))
        return training(Transformer(), lambda net, x, y: F.cross_entropy(net(x), y.flatten()), (tokens, following), dtype)

    class Residual(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.a, self.na = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
            self.b, self.nb = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
            same = stride == 1 and i == o
            self.shortcut = nn.Identity() if same else nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

        def forward(self, x):
            return F.relu(self.nb(self.b(F.relu(self.na(self.a(x))))) + self.shortcut(x))

    class Resnet18(nn.Module):
        def __init__(self):
            super().__init__()
            layers, i = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
            for stage, o in enumerate((64, 128, 256, 512)):
                layers += [Residual(i, o, 2 if stage else 1), Residual(o, o, 1)]
                i = o
            self.body, self.head = nn.Sequential(*layers), nn.Linear(512, 1000)

        def forward(self, x):
            return self.head(self.body(x).mean((2, 3)))

    def residual(dtype):
        x, y = torch.randn(32, 3, 32, 32, device=device), torch.randint(0, 1000, (32,), device=device)
        return training(Resnet18(), lambda net, x, y: F.cross_entropy(net(x), y), (x, y), dtype)

    return {
        "W1 100 adds": adds,
        "W2 mlp": perceptron,
        "W3 gru": recurrent,
        "W4 transformer bf16": lambda: transformer(torch.bfloat16),
        "W4 transformer f32": lambda: transformer(None),
        "W5 resnet18 bf16": lambda: residual(torch.bfloat16),
        "W5 resnet18 f32": lambda: residual(None),
        "W6 chain": chain,
    }


def captured(torch, run):
    """A CUDA graph of the whole step, warmed up on a stream of its own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def way_to_run(torch, make, way):
    forward, step = make()
    run = step or forward
    if way == "eager":
        return run
    if way == "graph":
        return captured(torch, run)
    options = {"mode": "reduce-overhead"} if way == "reduce-overhead" else {}
    fast = torch.compile(forward, **options)
    if step is None:
        return fast

    def compiled_step():
        torch.compiler.cudagraph_mark_step_begin()
        return step(fast)

    return compiled_step


def kernels(torch, rows, in_time):
    """Single kernels, under the names of gpu_bench."""
    F = torch.nn.functional

    def normal(dtype, *shape):
        return torch.randn(*shape, device="cuda", dtype=dtype)

    for dtype, name in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        cases = {
            "copy(f32[64,1024,1024])": lambda: (lambda x, y: lambda: y.copy_(x))(normal(dtype, 64, 1024, 1024), normal(dtype, 64, 1024, 1024)),
            "add(f32[64,1024,1024], f32[64,1024,1024])": lambda: (lambda x, y: lambda: x + y)(normal(dtype, 64, 1024, 1024), normal(dtype, 64, 1024, 1024)),
            "softmax(f32[8192,1024])": lambda: (lambda x: lambda: torch.softmax(x, 1))(normal(dtype, 8192, 1024)),
            "layer_norm(f32[65536,768], f32[768], f32[768])": lambda: (lambda x, w, b: lambda: F.layer_norm(x, (768,), w, b))(
                normal(dtype, 65536, 768), normal(dtype, 768), normal(dtype, 768)),
            "sum(f32[64,1024,1024])": lambda: (lambda x: lambda: x.sum())(normal(dtype, 64, 1024, 1024)),
            "matmul(f32[1024,1024], f32[1024,1024])": lambda: (lambda a, b: lambda: a @ b)(normal(dtype, 1024, 1024), normal(dtype, 1024, 1024)),
            "matmul(f32[4096,4096], f32[4096,4096])": lambda: (lambda a, b: lambda: a @ b)(normal(dtype, 4096, 4096), normal(dtype, 4096, 4096)),
            "matmul(f32[64,256], f32[256,256])": lambda: (lambda a, b: lambda: a @ b)(normal(dtype, 64, 256), normal(dtype, 256, 256)),
            "matmul(f32[1024,256], f32[256,1024])": lambda: (lambda a, b: lambda: a @ b)(normal(dtype, 1024, 256), normal(dtype, 256, 1024)),
            "matmul(f32[8,4,128,64], f32[8,4,64,128])": lambda: (lambda a, b: lambda: a @ b)(normal(dtype, 8, 4, 128, 64), normal(dtype, 8, 4, 64, 128)),
            "conv2d(f32[32,64,32,32], f32[64,64,3,3])": lambda: (lambda x, w: lambda: F.conv2d(x, w, padding=1))(
                normal(dtype, 32, 64, 32, 32), normal(dtype, 64, 64, 3, 3)),
            "conv2d(f32[32,256,14,14], f32[256,256,3,3])": lambda: (lambda x, w: lambda: F.conv2d(x, w, padding=1))(
                normal(dtype, 32, 256, 14, 14), normal(dtype, 256, 256, 3, 3)),
            "scaled_dot_product_attention(f32[8,4,128,64], f32[8,4,128,64], f32[8,4,128,64])": lambda: (
                lambda q, k, v: lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))(*[normal(dtype, 8, 4, 128, 64) for _ in range(3)]),
            "scaled_dot_product_attention(f32[4,12,1024,64], f32[4,12,1024,64], f32[4,12,1024,64])": lambda: (
                lambda q, k, v: lambda: F.scaled_dot_product_attention(q, k, v))(*[normal(dtype, 4, 12, 1024, 64) for _ in range(3)]),
        }
        for case, make in cases.items():
            title = f"{case} {name}"
            if not in_time(title, "eager"):
                continue
            try:
                with torch.no_grad():
                    rows.add(title, "eager", measure(torch, make(), 0.3, 20))
            except Exception as error:  # the other cases go on
                rows.failed(title, "eager", error)


def main():
    parser = argparse.ArgumentParser(description="W1 to W6 in PyTorch.")
    parser.add_argument("--json", default="")
    parser.add_argument("--seconds", type=float, default=115)
    parser.add_argument("--compile-seconds", type=float, default=75, help="torch.compile is not begun after so many seconds of it")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"left out: PyTorch is not there ({error})")
        return 0
    if not torch.cuda.is_available():
        print("peers.py: PyTorch finds no GPU", file=sys.stderr)
        return 6
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name(0)}, CUDA {torch.version.cuda}", flush=True)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False  # f32 is f32 on both sides
    rows = Rows(arguments.json)
    begin, compiling = time.perf_counter(), 0.0

    def in_time(name, way):
        if arguments.only not in name:
            return False
        if time.perf_counter() - begin < arguments.seconds and (way in ("eager", "graph") or compiling < arguments.compile_seconds):
            return True
        rows.failed(name, way, "left out: the time was over")
        return False

    makers = workloads(torch)
    # The tests that need no compiler come first.
    for ways in (WAYS[:2], None, WAYS[2:]):
        if ways is None:
            kernels(torch, rows, in_time)
            continue
        for name, make in makers.items():
            for way in ways:
                if not in_time(name, way):
                    continue
                start = time.perf_counter()
                try:
                    torch.manual_seed(1)
                    torch.cuda.empty_cache()
                    torch.cuda.reset_peak_memory_stats()
                    run = way_to_run(torch, make, way)
                    run()
                    torch.cuda.synchronize()
                    ready = (time.perf_counter() - start) * 1000
                    times = measure(torch, run, 1.0)
                    rows.add(name, way, {**times, "ready_ms": ready, "peak_bytes": torch.cuda.max_memory_reserved()})
                except Exception as error:  # the other ways go on
                    rows.failed(name, way, error)
                finally:
                    torch._dynamo.reset() if way in WAYS[2:] else None
                if way in WAYS[2:]:
                    compiling += time.perf_counter() - start
    return 0


if __name__ == "__main__":
    sys.exit(main())
