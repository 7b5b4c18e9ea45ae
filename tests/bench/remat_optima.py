#!/usr/bin/env python3
"""Proves the least cost of recomputation with CBC, for the graphs and budgets of remat_bench.

    remat_optima.py GRAPH [--points 16 | --bytes B[=COST],B,...] [--seconds 1800] [--append FILE.csv]

GRAPH is a file of ../shared/data/moccasin with Checkmate's costs, or chain:N (N layers of one byte: forward 1 us, backward 2 us).
The model is Checkmate's (Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization", 2020) in its
tightened form: the nodes keep their order, and stage t ends with the first run of node t. A planner that lets a first run wait for its
first reader may cost less. COST is that of a plan known to fit the
budget: the program then looks for a cheaper one only, nodes that cost more are not run again, and where it proves that there is none, COST is
the optimum. Each budget gives one line: graph,budget_bytes,cost,keep_all_cost,bound,status,seconds.

The program needs `cbc` (Debian: coinor-cbc).
"""
import argparse
import json
import math
import os
import re
import subprocess
import tempfile
import time


def read_graph(name):
    """The bytes and costs by node, and the nodes that each node reads; nodes are numbered in execution order."""
    if name.startswith("chain:"):
        return chain(int(name[6:]))
    with open(name) as file:
        data = json.load(file)
    nodes = sorted(data["nodes"], key=lambda node: node["id"])
    number = {node["id"]: i for i, node in enumerate(nodes)}
    reads = [set() for _ in nodes]
    for link in data["links"]:
        reads[number[link["target"]]].add(number[link["source"]])
    return [int(n["cost_ram"]) for n in nodes], [float(n["cost_cpu"]) for n in nodes], [sorted(r) for r in reads]


def chain(layers):
    n = 2 * layers + 1
    costs = [1.0] * layers + [0.0] + [2.0] * layers
    reads = [[i - 1] if i else [] for i in range(layers + 1)]
    reads += [[layers + i, layers - 1 - i] for i in range(layers)]
    return [1] * n, costs, reads


def keep_all_peak(size, reads):
    last = {}
    for k, operands in enumerate(reads):
        last[k] = k
        for i in operands:
            last[i] = k
    alive, peak = 0, 0
    for k in range(len(size)):
        alive += size[k]
        peak = max(peak, alive)
        alive -= sum(size[i] for i in range(k + 1) if last[i] == k)
    return peak


class Model:
    """The integer program as the text of an LP file. R: node i runs in stage t. S: node i's value is there when stage t begins.
    F: it goes right after stage t has run node k. A: the bytes alive before stage t runs node k."""

    def __init__(self, size, cost, reads, budget, worth):
        self.n = len(size)
        self.size, self.cost, self.reads, self.unit, self.worth = size, cost, reads, max(budget, 1) / 1000, worth
        self.readers = [[] for _ in size]
        for k, operands in enumerate(reads):
            for i in operands:
                self.readers[i].append(k)
        self.last_run, self.last_read = [0] * self.n, [-1] * self.n
        for i in reversed(range(self.n)):
            self.last_read[i] = max((self.last_run[k] for k in self.readers[i]), default=-1)
            self.last_run[i] = max(i, self.last_read[i]) if cost[i] <= worth else i
        self.rows, self.binaries = [], []

    def runs(self, t, i):
        return i == t or i < t <= self.last_run[i]

    def keeps(self, t, i):
        return i < t <= self.last_read[i]

    def row(self, terms, relation, right):
        text = " ".join(f"{'+' if c >= 0 else '-'} {abs(c):.15g} {v}" for c, v in terms if c)
        if text:
            self.rows.append(f"{text} {relation} {right:.15g}")

    def R(self, t, i, factor):
        return [(factor, f"R_{t}_{i}")] if self.runs(t, i) else []

    def S(self, t, i, factor):
        return [(factor, f"S_{t}_{i}")] if self.keeps(t, i) else []

    def stage(self, t):
        self.row(self.R(t, t, 1), "=", 1)
        self.binaries += [f"R_{t}_{i}" for i in range(t + 1) if self.runs(t, i)] + [f"S_{t}_{i}" for i in range(t) if self.keeps(t, i)]
        for i in range(t + 1):
            if self.runs(t, i) or self.keeps(t, i):
                self.value(t, i)
        self.memory(t)

    def frees(self, t, i):
        return ([i] if i == t else []) + [k for k in self.readers[i] if k <= t and self.runs(t, k)]

    def value(self, t, i):
        """What is there goes after one node of the stage, or is kept for the next stage; until then it is there to be read."""
        at = self.frees(t, i)
        self.row(self.S(t, i, 1) + self.R(t, i, 1) + self.S(t + 1, i, -1) + [(-1, f"F_{t}_{i}_{k}") for k in at], "=", 0)
        for m, k in enumerate(at):
            self.row([(1, f"F_{t}_{i}_{k}")] + self.R(t, k, -1), "<=", 0)
            if k != i:
                self.row(self.R(t, k, 1) + [(1, f"F_{t}_{i}_{j}") for j in at[:m]] + self.S(t, i, -1) + self.R(t, i, -1), "<=", 0)

    def memory(self, t):
        change = [term for i in range(t) for term in self.S(t, i, self.size[i] / self.unit)]
        for k in range(t + 1):
            if not self.runs(t, k):
                continue
            self.row(change + [(-1, f"A_{t}_{k}")], "=", 0)
            change = [(1, f"A_{t}_{k}")] + self.R(t, k, self.size[k] / self.unit)
            self.row(change, "<=", 1000)
            change = change + [(-self.size[i] / self.unit, f"F_{t}_{i}_{k}") for i in self.reads[k] + [k]
                               if (self.runs(t, i) or self.keeps(t, i)) and k in self.frees(t, i)]

    def text(self):
        for t in range(self.n):
            self.stage(t)
        again = [(self.cost[i], f"R_{t}_{i}") for t in range(self.n) for i in range(t) if self.runs(t, i) and self.cost[i]]
        cost = " ".join(f"+ {c:.12g} {v}" for c, v in again)
        rows = "\n".join(f"c{i}: {row}" for i, row in enumerate(self.rows))
        names = "\n".join(self.binaries)
        return f"Minimize\nobj: {cost or '0 R_0_0'}\nSubject To\n{rows}\nBinaries\n{names}\nEnd\n"


def replayed(size, cost, reads, runs, keeps):
    """The peak and cost of a schedule, replayed run by run, so that no answer rests on the model alone."""
    n, peak, total = len(size), 0, 0.0
    there = set()
    for t in range(n):
        there &= keeps[t] if t else set()
        for k in range(t + 1):
            if k not in runs[t]:
                continue
            assert all(i in there for i in reads[k]), "an operand is missing"
            there.add(k)
            total += cost[k]
            peak = max(peak, sum(size[i] for i in there))
            later = keeps[t + 1] if t + 1 < n else set()
            wanted = {i for j in runs[t] if j > k for i in reads[j]} | later
            there &= wanted
    return peak, total


def step_of(cost):
    """Costs of plans are multiples of it; 0: not known."""
    return float(math.gcd(*(int(c) for c in cost))) if all(c == int(c) for c in cost) else 0


def solve(size, cost, reads, budget, known, seconds):
    step, once = step_of(cost), sum(cost)
    worth = known - once - (step or 1e-6 * once)  # infinity: nothing is known
    if worth < 0:
        return known, known, "optimal"
    with tempfile.TemporaryDirectory() as folder:
        path, answer = os.path.join(folder, "model.lp"), os.path.join(folder, "answer.txt")
        with open(path, "w") as file:
            file.write(Model(size, cost, reads, budget, worth).text())
        log = subprocess.run(["cbc", path, "sec", str(seconds), "ratio", "0", "heuristicsOnOff", "off", *(["increment", str(0.999 * step)] if step else []),
                              *(["cutoff", repr(worth + 1e-3 * step)] if worth < float("inf") else []), "solve", "solution", answer], capture_output=True, text=True).stdout
        with open(answer) as file:
            lines = file.read().splitlines()
    n = len(size)
    runs, keeps = [set() for _ in range(n)], [set() for _ in range(n)]
    for line in lines[1:]:
        found = re.match(r"\s*(?:\*\*)?\s*\d+ ([RS])_(\d+)_(\d+)\s+(\S+)", line)
        if found and float(found[4]) > 0.5:
            (runs if found[1] == "R" else keeps)[int(found[2])].add(int(found[3]))
    status = lines[0].split(" - ")[0].strip().lower()
    if status.startswith(("infeasible", "integer infeasible")) and known < float("inf"):
        return known, known if step else known - 1e-6 * once, "optimal"
    if status.startswith(("infeasible", "integer infeasible")) or not runs[0]:
        return (known if known < float("inf") else None), None, status
    peak, total = replayed(size, cost, reads, runs, keeps)
    assert peak <= budget * (1 + 1e-9), f"the schedule needs {peak} bytes"
    bound = total if status.startswith("optimal") else once + float((re.findall(r"Lower bound:\s*(\S+)", log) or ["nan"])[-1])
    return total, bound, status


def floor_of(size, reads):
    return max(size[k] + sum(size[i] for i in operands) for k, operands in enumerate(reads))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--points", type=int, default=16)
    parser.add_argument("--bytes", default="")
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--append", default="")
    options = parser.parse_args()
    size, cost, reads = read_graph(options.graph)
    low, high = floor_of(size, reads), keep_all_peak(size, reads)
    given = [b.split("=") for b in options.bytes.split(",") if b]
    known = {int(b[0]): float(b[1]) for b in given if len(b) > 1}
    budgets = [int(b[0]) for b in given] or [
        low + (high - low) * i // (options.points - 1) for i in range(options.points)]
    name = os.path.basename(options.graph).removesuffix(".json")
    for budget in reversed(sorted(set(budgets))):
        begin = time.time()
        total, bound, status = solve(size, cost, reads, budget, known.get(budget, float("inf")), options.seconds)
        numbers = ["" if v is None else f"{v:.6g}" if v != round(v) else f"{v:.0f}" for v in (total, sum(cost), bound)]
        line = ",".join([name, str(budget), *numbers, status, f"{time.time() - begin:.1f}"])
        print(line, flush=True)
        if options.append:
            with open(options.append, "a") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
