#!/usr/bin/env python3
"""Runs every case of cases.txt in PyTorch and writes operands, results and gradients to expected.txt, which pytorch_test.cpp reads.

    python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
    /tmp/torch/bin/python tests/agree/pytorch/make_expected.py

A line of cases.txt is a case:

    op(types) {attributes} | the same in Python | options

The first part is an example as in the blocks of the ops, or a call of a function of pytorch_test.cpp (`fn.` before the name). In Python
the operands are a, b, c, ..., `dt` is the dtype of this run, T() is torch.tensor() of that dtype, and step() below runs an optimizer; a result may be a tuple, and None in
it is a result that is not compared; so is the gradient of an operand that Python detaches. A case with f32 in it runs in f32 and, with f64 in place of f32, in f64. The options, separated by `;`:

    edges          another case on the values of EDGES, or on all pairs of EDGE_PAIRS
    unless: a < 0  of these boundary values, those for which this holds go into a third case, whose results must differ
    a: 1 inf nan   the elements of operand a, repeated as often as needed
    tol: 10        tolerances ten times as large
    only: f64      one dtype alone
    no gradient    gradients are not compared
    any zero       0 and -0 are the same in results too; in gradients they always are
    differs        the results must differ, or the call must be refused; engine/ops/PYTORCH.md says why

`== name` begins a family, which is one test. The operands are multiples of 1/64, which both dtypes hold. The gradient of result k is given:
see head() here and in pytorch_test.cpp.
"""

import itertools
import math
import os
import re
import sys
import warnings

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"f32": torch.float32, "f64": torch.float64, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "bool": torch.bool}
NAMES = {t: name for name, t in DTYPES.items()}
EDGES = ("0 -0 1 -1 0.5 -0.5 2 -2 3 -3 6 -6 0.25 -0.25 20.5 -20.5 80 -80 100 -100 1000 -1000 1e-10 -1e-10 1e-30 -1e-30 1e30 -1e30 "
         "inf -inf nan").split()
EDGE_PAIRS = "0 -0 1 -1 0.5 2.5 -2.5 inf -inf nan".split()


# ---- the operands ----

class Random:
    """splitmix64"""

    def __init__(self, text):
        self.state = 0
        for byte in text.encode():
            self.state = (self.state * 1099511628211 + byte) % 2**64

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)


OPERAND = re.compile(r"(\w+)\[([\d,]*)\](?:\s*in\s*\(([^,]+),([^)]+)\))?")


class Operand:
    def __init__(self, match):
        self.dtype = match[1]
        self.shape = [int(s) for s in match[2].split(",") if s]
        default = {"bool": (0, 2), "f32": (-2, 2), "f64": (-2, 2)}.get(self.dtype, (0, 4))
        self.low, self.high = (float(match[3]), float(match[4])) if match[3] else default
        self.values = None

    def floating(self):
        return self.dtype in ("f32", "f64")

    def draw(self, random):
        count = math.prod(self.shape)
        unit = 64 if self.floating() else 1
        low, high = math.ceil(self.low * unit), math.ceil(self.high * unit)
        if self.values is None:
            self.values = [(low + random.next() % max(high - low, 1)) / unit for _ in range(count)]
        else:
            numbers = [float(np.float32(v)) for v in self.values] if self.floating() else [int(v) for v in self.values]
            self.values = [numbers[i % len(numbers)] for i in range(count)]

    def tensor(self, dtype):
        name = dtype if self.floating() else self.dtype
        values = self.values if self.floating() else [int(v) for v in self.values]
        return torch.tensor(values, dtype=DTYPES[name]).reshape(self.shape).requires_grad_(self.floating())


# ---- the cases ----

class Case:
    def __init__(self, line):
        fields = [f.strip() for f in line.split(" | ")]
        self.text, self.python = fields[0], fields[1]
        options = [o.strip() for o in fields[2].split(";")] if len(fields) > 2 else []
        inside = self.text[self.text.index("(") + 1:].split("{")[0]
        self.operands = [Operand(m) for m in OPERAND.finditer(inside)]
        self.edges, self.unless = "edges" in options, "False"
        self.gradient = "no gradient" not in options
        self.differs, self.any_zero = "differs" in options, "any zero" in options
        self.tolerance, self.dtypes = "1", ["f64", "f32"] if re.search(r"\bf32\b", self.text) else ["f64"]
        for option in options:
            name, _, value = option.partition(":")
            if name == "tol":
                self.tolerance = value.strip()
            elif name == "only":
                self.dtypes = [value.strip()]
            elif name == "unless":
                self.unless = value.strip()
            elif len(name) == 1 and value:
                self.operands["abcdefghijklmnop".index(name)].values = value.split()
            elif option not in ("edges", "no gradient", "differs", "any zero"):
                sys.exit(f"unknown option '{option}' in: {line}")

    def edge_cases(self):
        """The same on boundary values, one for each element: those where PyTorch agrees, those where it does not."""
        n = len(self.operands)
        rows = [(v,) for v in EDGES] if n == 1 else list(itertools.product(EDGE_PAIRS, repeat=n))
        apart = [r for r in rows if eval(self.unless, dict(zip("abc", map(float, r)), inf=math.inf, isnan=math.isnan))]
        return [self.on(rows, differs) for rows, differs in (([r for r in rows if r not in apart], False), (apart, True)) if rows]

    def on(self, rows, differs):
        """This case with one element for each row of values."""
        other = Case(self.text + " | " + self.python)
        for k, operand in enumerate(other.operands):
            operand.shape, operand.values = [len(rows)], [row[k] for row in rows]
        name, rest = self.text.split("(", 1)
        attributes = " {" + rest.split("{", 1)[1] if "{" in rest else ""
        other.text = name + "(" + ", ".join(f"{o.dtype}[{len(rows)}]" for o in other.operands) + ")" + attributes
        other.gradient, other.tolerance, other.dtypes, other.differs = self.gradient, self.tolerance, self.dtypes, differs
        other.any_zero = self.any_zero
        return other


def cases():
    with open(os.path.join(HERE, "cases.txt")) as file:
        for line in file:
            line = line.strip()
            if not line or line.startswith("//"):
                continue
            if line.startswith("=="):
                yield line[2:].strip()
                continue
            case = Case(line)
            yield case
            if case.edges:
                yield from case.edge_cases()


# ---- the text ----

def number(value, dtype):
    if dtype == "bool":
        return str(int(value))
    if dtype in ("f32", "f64"):
        if math.isnan(value):
            return "nan"
        text = f"{value:.9g}" if dtype == "f32" else f"{value:.15g}"
        if math.isinf(float(text)) and not math.isinf(value):
            text = repr(value)  # the largest number would round up
        return text.replace("e+", "e")
    return str(value)


def numbers(tensor, dtype):
    return "".join(" " + number(v, dtype) for v in tensor.detach().reshape(-1).tolist())


def shape(tensor):
    return "[" + ",".join(str(s) for s in tensor.shape) + "]"


def head(k, t):
    """The gradient of result k: numbers between -2.75 and 2.75, none of them 0."""
    values = [((i * 7 + k * 3) % 11 + 1) / 4 * (-1 if i % 2 else 1) for i in range(t.numel())]
    return torch.tensor(values, dtype=t.dtype).reshape(t.shape)


def step(kind, w, g, lr, state, **options):
    """One step of an optimizer from this state: the parameter after it, then the state in the same order."""
    parameter = torch.nn.Parameter(w.detach().clone())
    parameter.grad = g.detach().clone()
    optimizer = getattr(torch.optim, kind)([parameter], lr=float(lr), **options)
    optimizer.state[parameter].update({name: value.detach().clone() for name, value in state.items()})
    optimizer.step()
    return (parameter.detach(), *(optimizer.state[parameter][name] for name in state if name != "step"))


def evaluate(case, dtype):
    """The lines of results and gradients."""
    operands = [o.tensor(dtype) for o in case.operands]
    scope = dict(zip("abcdefghijklmnop", operands), torch=torch, F=F, math=math, step=step, dt=DTYPES[dtype])
    scope["inf"], scope["nan"], scope["T"] = math.inf, math.nan, lambda v: torch.tensor(v, dtype=DTYPES[dtype])
    results = eval(case.python, scope)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    lines = []
    for r in results:
        lines.append("y ?" if r is None else f"y {NAMES[r.dtype]}{shape(r)}{numbers(r, NAMES[r.dtype])}")
    targets = [(k, r) for k, r in enumerate(results) if r is not None and r.requires_grad]
    wrt = [o for o in operands if o.requires_grad]
    if case.gradient and targets and wrt:
        found = torch.autograd.grad([r for _, r in targets], wrt, [head(k, r) for k, r in targets], allow_unused=True)
        for x, g in zip(wrt, found):
            lines.append("dx ?" if g is None else "dx" + numbers(g, dtype))
    return lines


def block(case, random):
    for operand in case.operands:
        operand.draw(random)
    lines = [f"case {case.text}"]
    if case.tolerance != "1":
        lines.append(f"tol {case.tolerance}")
    lines += ["differs"] * case.differs + ["any zero"] * case.any_zero
    for operand in case.operands:
        values = operand.values if operand.floating() else [int(v) for v in operand.values]
        lines.append("x" + "".join(" " + (repr(v) if isinstance(v, int) else repr(v).removesuffix(".0")) for v in values))
    runs = {dtype: evaluate(case, dtype) for dtype in case.dtypes}
    if len(runs) == 2 and [line.replace("f64", "f32") for line in runs["f64"]] == runs["f32"]:
        return lines + ["as f64 f32"] + runs["f64"]
    for dtype, run in runs.items():
        lines += [f"as {dtype}"] + run
    return lines


def fingerprint(text):
    """FNV-1a of 64 bits: the test sees whether expected.txt is that of cases.txt."""
    h = 0xCBF29CE484222325
    for byte in text:
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with open(os.path.join(HERE, "cases.txt"), "rb") as file:
        print_of_cases = fingerprint(file.read())
    version = torch.__version__.split("+")[0]
    out = [f"// Made from cases.txt by make_expected.py with PyTorch {version} and NumPy {np.__version__}. Do not edit.",
           f"cases {print_of_cases:016x}"]
    count, failed = 0, 0
    for case in cases():
        if isinstance(case, str):
            out.append(f"family {case}")
            continue
        try:
            out += block(case, Random(case.text))
            count += 1
        except Exception as error:
            failed += 1
            print(f"{case.text} | {case.python}\n    {type(error).__name__}: {error}", file=sys.stderr)
    if failed:
        sys.exit(f"{failed} cases failed; expected.txt stays as it was")
    with open(os.path.join(HERE, "expected.txt"), "w") as file:
        file.write("\n".join(out) + "\n")
    print(f"{count} cases, {os.path.getsize(os.path.join(HERE, 'expected.txt'))} bytes")


main()
