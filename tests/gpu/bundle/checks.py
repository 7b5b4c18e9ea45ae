#!/usr/bin/env python3
"""The parts of run.sh that need more than a shell.

  checks.py info OUT.json
  checks.py check PROGRAM OUT.json LOG --seconds S
  checks.py sanitize PROGRAM OUT.json LOG --seconds S
  checks.py replay FOLDER OUT.json LOG --seconds S
  checks.py profile PROGRAM OUT.json LOG --seconds S
  checks.py merge FOLDER
"""
import argparse
import csv
import glob
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

SHOWN = 40  # failures that are printed


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        return (done.stdout + done.stderr).strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file, indent=1)


# ---- info ----
def info(arguments):
    wheels = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()
              if (d.metadata["Name"] or "").startswith(("nvidia-", "torch", "triton"))}
    version = os.path.join(os.path.dirname(os.path.abspath(__file__)), "version.txt")
    found = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "bundle": open(version).read().strip() if os.path.exists(version) else "unknown",
        "devices": output_of("nvidia-smi", "-L").splitlines(),
        "driver": output_of("nvidia-smi", "--query-gpu=driver_version,memory.total,clocks.max.sm,clocks.max.memory", "--format=csv,noheader"),
        "python": sys.version.split()[0],
        "packages": wheels,
        "compute_sanitizer": sanitizer() or "none",
        "cpus": os.cpu_count(),
    }
    write_json(arguments.out, found)
    for key, value in found.items():
        if key == "packages":
            kept = {k: v for k, v in value.items() if any(w in k for w in ("torch", "triton", "cublas", "cudnn", "nvrtc", "runtime"))}
            value = ", ".join(f"{k} {v}" for k, v in sorted(kept.items()))
        print(f"{key}: {value}")
    return 0


# ---- gtest programs, in several processes ----
class Runner:
    """Runs the cases of a GoogleTest program in several processes. A case that ends its process fails, and the others of that
    process run in a new one."""

    def __init__(self, command, seconds, jobs, log):
        self.command, self.jobs, self.log = command, jobs, log
        self.deadline = time.monotonic() + seconds
        self.lock = threading.Lock()
        self.passed, self.skipped, self.failed, self.notes, self.seconds = [], [], {}, [], {}

    def cases(self, filter_):
        listing = subprocess.run([self.command[-1], "--gtest_list_tests", "--gtest_filter=" + filter_], capture_output=True, text=True)
        if listing.returncode:
            raise SystemExit(f"{self.command[-1]} lists no cases: exit {listing.returncode}: {(listing.stdout + listing.stderr)[-400:]}")
        names, suite = [], ""
        for line in listing.stdout.splitlines():
            text = line.split("#")[0].rstrip()
            if text and not text.startswith(" ") and text.endswith("."):
                suite = text
            elif text.startswith("  "):
                names.append(suite + text.strip())
        return names

    def run(self, cases, jobs, batches_per_job=2):
        batches = [cases[i::jobs * batches_per_job] for i in range(jobs * batches_per_job)]
        queue = [b for b in batches if b]

        def work():
            while True:
                with self.lock:
                    if not queue:
                        return
                    batch = queue.pop(0)
                while batch:
                    batch = self.run_batch(batch)

        workers = [threading.Thread(target=work) for _ in range(jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def run_batch(self, batch):
        """Runs the cases in one process, and returns those that are left."""
        left = self.deadline - time.monotonic()
        if left < 1:
            with self.lock:
                for name in batch:
                    self.failed[name] = "not run: the time was over"
            return []
        process = subprocess.Popen(self.command + ["--gtest_filter=" + ":".join(batch), "--gtest_color=no"], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace")
        timer = threading.Timer(left, process.kill)
        timer.start()
        running, lines, done = None, [], set()
        for line in process.stdout:
            line = line.rstrip("\n")
            with self.lock:
                self.log.write(line + "\n")
                if line.startswith("note: ") and line not in self.notes:
                    self.notes.append(line)
            word, name = line[:12], line[13:].split(",")[0].split(" (")[0]
            if word == "[ RUN      ]":
                running, lines = name, []
            elif running and word in ("[       OK ]", "[  FAILED  ]", "[  SKIPPED ]") and name == running:
                self.note(running, word, lines, line)
                done.add(running)
                running = None
            elif running or line.startswith("device lost"):
                lines.append(line)
        process.wait()
        timer.cancel()
        if running:
            with self.lock:
                why = "the time was over" if time.monotonic() >= self.deadline else f"ended its process (exit {process.returncode})"
                self.failed[running] = why + ": " + " | ".join(lines[-12:])
            done.add(running)
        elif not done:
            with self.lock:
                for name in batch:
                    self.failed[name] = f"did not start (exit {process.returncode})"
            return []
        return [name for name in batch if name not in done]

    def note(self, name, word, lines, line):
        complaints = [l for l in lines if l.startswith("=========") and not any(
            quiet in l for quiet in ("COMPUTE-SANITIZER", "ERROR SUMMARY: 0", "RACECHECK SUMMARY: 0", "LEAK SUMMARY: 0"))]
        with self.lock:
            if "(" in line:
                self.seconds[name] = int(line.rsplit("(", 1)[1].split()[0]) / 1000
            if complaints:
                self.failed[name] = " | ".join(complaints[:6])
            elif word == "[       OK ]":
                self.passed.append(name)
            elif word == "[  SKIPPED ]":
                self.skipped.append(name + ": " + " ".join(l.strip() for l in lines if "Skipped" not in l)[-200:])
            else:
                self.failed[name] = " | ".join(l.strip() for l in lines if l.strip() and not l.startswith("note: "))

    def report(self, title):
        slowest = sorted(self.seconds, key=self.seconds.get)[-3:]
        print(f"{title}: {len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped; slowest: " +
              ", ".join(f"{n} {self.seconds[n]:.1f} s" for n in reversed(slowest)))
        for line in self.notes[:30] + self.skipped:
            print("  " + line)
        for name in sorted(self.failed)[:SHOWN]:
            print(f"  FAILED {name}: {self.failed[name][:420]}")
        if len(self.failed) > SHOWN:
            print(f"  and {len(self.failed) - SHOWN} more: " + " ".join(sorted(self.failed)[SHOWN:])[:2000])
        return {"passed": len(self.passed), "failed": self.failed, "skipped": self.skipped, "notes": self.notes, "seconds": self.seconds}


def check(arguments):
    with open(arguments.log, "a") as log:
        jobs = max(1, min(8, (os.cpu_count() or 2) // 2))
        runner = Runner([arguments.program], arguments.seconds, jobs, log)
        cases = runner.cases("-*San*")
        # Cases that look at the memory of the whole device, or at times, run while no other does.
        alone = [c for c in cases if "Alone" in c]
        runner.run([c for c in cases if c not in alone], jobs)
        runner.run(alone, 1)
        result = runner.report("gpu_check")
    write_json(arguments.out, result)
    return 1 if runner.failed else 0


# ---- compute-sanitizer ----
def sanitizer():
    places = [shutil.which("compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer"]
    for folder in filter(None, sys.path):
        places += glob.glob(folder + "/nvidia/*/bin/compute-sanitizer")
    return next((p for p in places if p and os.access(p, os.X_OK)), None)


def sanitize(arguments):
    found = sanitizer()
    if not found:
        print("left out: there is no compute-sanitizer")
        write_json(arguments.out, {"left_out": "there is no compute-sanitizer"})
        return 0
    results = {}
    failed = False
    with open(arguments.log, "a") as log:
        for tool, share in (("memcheck", 0.55), ("racecheck", 0.45)):
            jobs = max(1, min(6, (os.cpu_count() or 2) // 2))
            runner = Runner([found, "--tool", tool, arguments.program], arguments.seconds * share, jobs, log)
            runner.run(runner.cases("*San*"), jobs, 1)  # a process starts slowly there
            results[tool] = runner.report(tool)
            failed = failed or bool(runner.failed)
    write_json(arguments.out, results)
    return 1 if failed else 0


# ---- Nsight Compute ----
PROFILED = ("W4 transformer bf16", "W4 transformer bf16 fused", "W5 resnet18 bf16 fused", "W5 resnet18 f32 fused", "W3 gru fused", "W2 mlp fused")


def profiler():
    places = [shutil.which("ncu"), "/usr/local/cuda/bin/ncu"] + sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"))
    return next((p for p in places if p and os.access(p, os.X_OK)), None)


def kernel_times(text):
    """Microseconds and calls of each kernel in the table that ncu prints, the longest first."""
    begin = text.find('"ID"')
    times = {}
    for row in csv.DictReader(text[begin:].splitlines()) if begin >= 0 else []:
        scale = {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3}.get(row.get("Metric Unit"))
        if scale is None:
            continue
        name = re.sub(r"\(anonymous namespace\)::|tapedeck::|kernels::|cuda::|<unnamed>::", "", row["Kernel Name"])
        key = f"{name[:300]} grid {row.get('Grid Size', '')} block {row.get('Block Size', '')}"
        us, calls = times.get(key, (0, 0))
        times[key] = (us + float(row["Metric Value"].replace(",", "")) * scale, calls + 1)
    return sorted(((us, calls, name) for name, (us, calls) in times.items()), reverse=True)


def profile(arguments):
    """The time of each kernel in one step of each workload, alone on the device."""
    found, deadline = profiler(), time.monotonic() + arguments.seconds
    if not found:
        print("left out: there is no ncu")
        write_json(arguments.out, {"left_out": "there is no ncu"})
        return 0
    results, failed = {}, 0
    for workload in PROFILED:
        command = [found, "--csv", "--clock-control", "none", "--metrics", "gpu__time_duration.sum", "--print-kernel-base", "demangled",
                   "--print-units", "base", arguments.program, "--once", "--only", workload]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=max(1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            print(f"{workload}: the time was over")
            failed += 1
            continue
        times = kernel_times(done.stdout)
        results[workload] = times
        failed += not times
        print(f"{workload}: {sum(us for us, _, _ in times):.1f} us in {sum(calls for _, calls, _ in times)} kernels, exit {done.returncode}" +
              ("" if times else ": " + (done.stdout + done.stderr)[-400:]))
        for us, calls, name in times[:12]:
            print(f"  {us:9.1f} us  {calls:4} x  {name[:200]}")
    write_json(arguments.out, results)
    return 1 if failed else 0


# ---- the tool ----
def replay(arguments):
    tool, deadline = os.path.join(arguments.program, "bin", "tapedeck"), time.monotonic() + arguments.seconds
    results, failed = [], 0
    with open(arguments.log, "a") as log, tempfile.TemporaryDirectory() as work:
        def call(*words):
            left = deadline - time.monotonic()
            if left < 1:
                return 124, "the time was over"
            try:
                done = subprocess.run([tool, *words], capture_output=True, text=True, timeout=left)
            except subprocess.TimeoutExpired:
                return 124, "the time was over"
            log.write(f"$ tapedeck {' '.join(words)}\n{done.stdout}{done.stderr}exit {done.returncode}\n")
            return done.returncode, (done.stderr.strip() or done.stdout.strip())[-300:]

        tapes = sorted(glob.glob(os.path.join(arguments.program, "tapes", "*.tape")))
        for dtype in ("f32", "bf16"):
            path = os.path.join(work, f"gpt2_{dtype}.tape")
            code, text = call("record", "gpt2", "--batch", "2", "--seq", "64", "--layers", "2", "--width", "128", "--dtype", dtype, "-q", "-o", path)
            if code == 0:
                tapes.append(path)
            else:
                print(f"  gpt2 {dtype} was not recorded: {text}")
        for tape in tapes:
            name = os.path.basename(tape)[:-len(".tape")]
            expected = os.path.join(work, name)
            tolerance = ["--rtol", "0.05", "--atol", "0.05"] if "bf16" in name else ["--rtol", "0.001", "--atol", "0.0005"]
            # Five steps of cnn make two percent of a difference in the last bit of its weights.
            steps = ["--steps", "3" if name == "cnn" else "5", "-q"]
            code, text = call("replay", tape, *steps, "-o", expected)
            # Most of the memory of the other steps is weights, which no budget makes less.
            for title, more in [("", [])] + ([(" budget 70%", ["--budget", "70%"])] if name == "cnn" else []):
                if code == 0:
                    got, said = call("replay", tape, *steps, "--device", "cuda", "--expect", expected, *tolerance, *more)
                else:
                    got, said = code, "on the CPU: " + text
                results.append({"step": name + title, "exit": got, "said": said})
                failed += got != 0
                print(f"  {'ok    ' if got == 0 else 'FAILED'} {name}{title}" + ("" if got == 0 else f": exit {got}: {said}"))
    write_json(arguments.out, results)
    return 1 if failed else 0


# ---- one file of everything ----
def read_part(path):
    try:
        with open(path) as file:
            return [json.loads(line) for line in file if line.strip()] if path.endswith(".jsonl") else json.load(file)
    except ValueError as error:
        return f"unreadable: {error}"


def failures_of(everything):
    """The failed cases of each part, by its name."""
    parts = {"check": everything.get("check")}
    parts.update(everything.get("sanitize") if isinstance(everything.get("sanitize"), dict) else {})
    return {name: sorted(part["failed"]) for name, part in parts.items() if isinstance(part, dict) and part.get("failed")}


def merge(arguments):
    everything = {"parts": {}}
    for path in sorted(glob.glob(os.path.join(arguments.out, "part.*"))):
        key = os.path.basename(path)[len("part."):].rsplit(".", 1)[0]
        if key.startswith("time."):
            everything["parts"][key[len("time."):]] = read_part(path)
        else:
            everything[key] = read_part(path)
    write_json(os.path.join(arguments.out, "results.json"), everything)
    for path in glob.glob(os.path.join(arguments.out, "part.*")):
        os.remove(path)
    for name, times in everything["parts"].items():
        print(f"{name}: exit {times['exit']}, {times['seconds']} s")
    for name, failed in failures_of(everything).items():
        print(f"{name}: {len(failed)} failed: " + " ".join(failed)[:1500])
    return 0


def main():
    parser = argparse.ArgumentParser(description="The parts of run.sh.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info").add_argument("out")
    commands.add_parser("merge").add_argument("out")
    for name in ("check", "sanitize", "replay", "profile"):
        command = commands.add_parser(name)
        command.add_argument("program")
        command.add_argument("out")
        command.add_argument("log")
        command.add_argument("--seconds", type=float, default=100)
    arguments = parser.parse_args()
    return {"info": info, "check": check, "sanitize": sanitize, "replay": replay,
            "profile": profile, "merge": merge}[arguments.command](arguments)


if __name__ == "__main__":
    sys.exit(main())
