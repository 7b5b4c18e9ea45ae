#!/usr/bin/env python3
"""Proves the least cost of recomputation with CBC, for the graphs and budgets of remat_bench.

    remat_optima.py GRAPH [--points 16 | --bytes B,B,...] [--seconds 1800] [--append FILE.csv]

GRAPH is a file of ../shared/data/moccasin with Checkmate's costs, or chain:N (N layers of one byte: forward 1 us, backward 2 us).
The model is Checkmate's (Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization", 2020) in its
tightened form: the nodes keep their order, and stage t ends with the first run of node t. A planner that lets a first run wait for its
first reader may cost less. Each budget gives one line: graph,budget_bytes,cost,keep_all_cost,bound,status,seconds.

The program needs `cbc` (Debian: coinor-cbc).
"""
import argparse
import json
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
    F: it goes right after stage t has run node k. U: the bytes alive while stage t runs node k."""

    def __init__(self, size, cost, reads, budget):
        self.n = len(size)
        self.size, self.cost, self.reads, self.unit = size, cost, reads, max(budget, 1)
        self.readers = [[] for _ in size]
        for k, operands in enumerate(reads):
            for i in operands:
                self.readers[i].append(k)
        self.rows, self.binaries, self.bounds = [], [], []

    def weight(self, i):
        return self.size[i] / self.unit

    def row(self, terms, relation, right):
        text = " ".join(f"{'+' if c >= 0 else '-'} {abs(c):.12g} {v}" for c, v in terms if c)
        if text:
            self.rows.append(f"{text} {relation} {right:.12g}")

    def stage(self, t):
        for i in range(t + 1):
            self.binaries.append(f"R_{t}_{i}")
            if i < t:
                self.binaries.append(f"S_{t}_{i}")
                self.row([(1, f"R_{t}_{i}"), (1, f"S_{t}_{i}")], "<=", 1)
                self.row([(1, f"S_{t}_{i}"), (-1, f"R_{t-1}_{i}")] + ([(-1, f"S_{t-1}_{i}")] if i < t - 1 else []), "<=", 0)
                self.useful(t, i)
        self.row([(1, f"R_{t}_{t}")], "=", 1)
        for k in range(t + 1):
            for i in self.reads[k]:
                self.row([(1, f"R_{t}_{k}"), (-1, f"R_{t}_{i}"), (-1, f"S_{t}_{i}")], "<=", 0)
        self.frees(t)
        self.memory(t)

    def useful(self, t, i):
        """A cut: a node runs again only for a reader in the stage, or to be kept."""
        kept = [(-1, f"S_{t+1}_{i}")] if t + 1 < self.n else []
        self.row([(1, f"R_{t}_{i}")] + [(-1, f"R_{t}_{k}") for k in self.readers[i] if k <= t] + kept, "<=", 0)

    def frees(self, t):
        for i in range(t + 1):
            at = [k for k in self.readers[i] if k <= t] + [i]
            for k in at:
                free = f"F_{t}_{i}_{k}"
                self.bounds.append(f"0 <= {free} <= 1")
                self.row([(1, free), (-1, f"R_{t}_{k}")], "<=", 0)
                if t + 1 < self.n:
                    self.row([(1, free), (1, f"S_{t+1}_{i}")], "<=", 1)
                for j in at:
                    if j > k:
                        self.row([(1, free), (1, f"R_{t}_{j}")], "<=", 1)
            self.row([(1, f"F_{t}_{i}_{k}") for k in at], "<=", 1)

    def memory(self, t):
        for k in range(t + 1):
            self.bounds.append(f"0 <= U_{t}_{k} <= 1")
            terms = [(1, f"U_{t}_{k}"), (-self.weight(k), f"R_{t}_{k}")]
            if k == 0:
                terms += [(-self.weight(i), f"S_{t}_{i}") for i in range(t)]
            else:
                terms.append((-1, f"U_{t}_{k-1}"))
                terms += [(self.weight(i), f"F_{t}_{i}_{k-1}") for i in sorted(set(self.reads[k - 1] + [k - 1]))]
            self.row(terms, "=", 0)

    def text(self):
        for t in range(self.n):
            self.stage(t)
        cost = " ".join(f"+ {self.cost[i]:.12g} R_{t}_{i}" for t in range(self.n) for i in range(t + 1) if self.cost[i])
        rows = "\n".join(f"c{i}: {row}" for i, row in enumerate(self.rows))
        names = "\n".join(self.binaries)
        return f"Minimize\nobj: {cost}\nSubject To\n{rows}\nBounds\n" + "\n".join(self.bounds) + f"\nBinaries\n{names}\nEnd\n"


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


def solve(size, cost, reads, budget, seconds):
    with tempfile.TemporaryDirectory() as folder:
        path, answer = os.path.join(folder, "model.lp"), os.path.join(folder, "answer.txt")
        with open(path, "w") as file:
            file.write(Model(size, cost, reads, budget).text())
        log = subprocess.run(["cbc", path, "sec", str(seconds), "ratio", "0", "solve", "solution", answer], capture_output=True, text=True).stdout
        with open(answer) as file:
            lines = file.read().splitlines()
    n = len(size)
    runs, keeps = [set() for _ in range(n)], [set() for _ in range(n)]
    for line in lines[1:]:
        found = re.match(r"\s*(?:\*\*)?\s*\d+ ([RS])_(\d+)_(\d+)\s+(\S+)", line)
        if found and float(found[4]) > 0.5:
            (runs if found[1] == "R" else keeps)[int(found[2])].add(int(found[3]))
    status = lines[0].split(" - ")[0].strip().lower()
    if status.startswith("infeasible") or not runs[0]:
        return None, None, status
    peak, total = replayed(size, cost, reads, runs, keeps)
    assert peak <= budget * (1 + 1e-9), f"the schedule needs {peak} bytes"
    bound = total if status.startswith("optimal") else float((re.findall(r"Lower bound:\s*(\S+)", log) or ["nan"])[-1])
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
    budgets = [int(b) for b in options.bytes.split(",") if b] or [
        low + (high - low) * i // (options.points - 1) for i in range(options.points)]
    name = os.path.basename(options.graph).removesuffix(".json")
    for budget in reversed(sorted(set(budgets))):
        begin = time.time()
        total, bound, status = solve(size, cost, reads, budget, options.seconds)
        numbers = ["" if v is None else f"{v:.6g}" if v != round(v) else f"{v:.0f}" for v in (total, sum(cost), bound)]
        line = ",".join([name, str(budget), *numbers, status, f"{time.time() - begin:.1f}"])
        print(line, flush=True)
        if options.append:
            with open(options.append, "a") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
