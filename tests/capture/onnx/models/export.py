#!/usr/bin/env python3
"""Exports small PyTorch models to ONNX, with inputs, outputs and gradients of PyTorch to compare against.

Run with:  pip install torch onnx onnxscript && python export.py
It writes one folder per model beside this file, and README.md. What each folder holds stands in README.md.
"""

import collections
import copy
import logging
import pathlib
import re
import shutil
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.reference
import onnx_ir
import onnxscript
import torch
import torch.nn.functional as F
from onnx.reference.op_run import OpRun
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
TOLERANCE = 1e-5

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
torch.set_num_threads(1)


# ---------------------------------------------------------------- the models

class BasicBlock(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.projection = None
        if stride != 1 or inner != outer:
            self.projection = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride=stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        shortcut = x if self.projection is None else self.projection(x)
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + shortcut)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(4)
        self.block1 = BasicBlock(4, 4, 1)
        self.block2 = BasicBlock(4, 8, 2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu(self.bn(self.conv(x)))
        x = self.block2(self.block1(x))
        return self.fc(torch.flatten(self.pool(x), 1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        size = width // self.heads

        def split(t):
            return t.reshape(batch, length, self.heads, size).transpose(1, 2)

        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        weights = torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / size ** 0.5, dim=-1)
        y = torch.matmul(weights, v).transpose(1, 2).reshape(batch, length, width)
        return self.out(y)


class Transformer(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class BiLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6, num_layers=1, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(12, 3)

    def forward(self, x):
        y, _ = self.lstm(x)
        return self.fc(y[:, -1, :])


class ConvNorm(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.conv = nn.Conv2d(inner, outer, 3, padding=1)
        self.norm = nn.GroupNorm(2, outer)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = ConvNorm(3, 4)
        self.down2 = ConvNorm(4, 6)
        self.bottom = ConvNorm(6, 8)
        self.pool = nn.MaxPool2d(2)
        self.up2 = nn.ConvTranspose2d(8, 6, 2, stride=2)
        self.merge2 = ConvNorm(12, 6)
        self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.merge1 = ConvNorm(10, 4)
        self.head = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.bottom(self.pool(b))
        d = self.merge2(torch.cat([self.up2(c), b], dim=1))
        e = self.merge1(torch.cat([self.up1(d), a], dim=1))
        return self.head(e)


class ShuffleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.expand = nn.Conv2d(4, 4, 1, groups=2)
        self.depthwise = nn.Conv2d(4, 4, 3, padding=1, groups=4)
        self.reduce = nn.Conv2d(4, 4, 1, groups=2)
        self.fc = nn.Linear(8, 4)

    @staticmethod
    def shuffle(x, groups):
        n, c, h, w = x.shape
        return x.reshape(n, groups, c // groups, h, w).transpose(1, 2).reshape(n, c, h, w)

    def forward(self, x):
        x = F.relu(self.stem(x))
        left, right = x.chunk(2, dim=1)
        right = F.relu(self.expand(right))
        right = self.depthwise(self.shuffle(right, 2))
        right = F.relu(self.reduce(right))
        x = self.shuffle(torch.cat([left, right], dim=1), 2)
        first, second = torch.split(x, [3, 5], dim=1)
        x = torch.cat([second, first], dim=1)
        return self.fc(x.mean(dim=(2, 3)))


class SqueezeExcite(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(width, inner, 1)
        self.fc2 = nn.Conv2d(inner, width, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.fc2(F.relu(self.fc1(self.pool(x)))))


class InvertedResidual(nn.Module):
    def __init__(self, inner, hidden, outer, stride, activation, squeeze):
        super().__init__()
        self.residual = stride == 1 and inner == outer
        layers = [nn.Conv2d(inner, hidden, 1, bias=False), nn.BatchNorm2d(hidden), activation(),
                  nn.Conv2d(hidden, hidden, 3, stride=stride, padding=1, groups=hidden, bias=False),
                  nn.BatchNorm2d(hidden), activation()]
        if squeeze:
            layers.append(SqueezeExcite(hidden, 4))
        layers += [nn.Conv2d(hidden, outer, 1, bias=False), nn.BatchNorm2d(outer)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        y = self.layers(x)
        return x + y if self.residual else y


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(4), nn.Hardswish())
        self.block1 = InvertedResidual(4, 8, 4, 1, nn.ReLU6, squeeze=False)
        self.block2 = InvertedResidual(4, 8, 6, 2, nn.Hardswish, squeeze=True)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        x = self.block2(self.block1(self.stem(x)))
        return self.fc(self.dropout(x.mean(dim=(2, 3))))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 10)
        self.dropout = nn.Dropout(0.5)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        return self.fc2(self.dropout(F.relu(self.fc1(x))))


# ---------------------------------------------------------------- the list of what is exported

EVAL_NEW = dict(external_data=False)
TRAIN_NEW = dict(external_data=False)  # with model.train()
TRAIN_OLD = dict(dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)

Case = collections.namedtuple("Case", "name model shape seed options train loss stored_shape keep_dropout")


def case(name, model, shape, seed, options=EVAL_NEW, train=False, loss=None, stored_shape=None,
         keep_dropout=False):
    return Case(name, model, shape, seed, options, train, loss, stored_shape or shape, keep_dropout)


CASES = [
    case("resnet_block", ResNet, (2, 3, 16, 16), 1),
    case("resnet_block_train", ResNet, (2, 3, 16, 16), 1, TRAIN_OLD, True, "cross_entropy"),
    case("resnet_block_dynamic", ResNet, (2, 3, 16, 16), 1,
         dict(EVAL_NEW, dynamic_shapes=({0: torch.export.Dim("batch")},)), stored_shape=(3, 3, 16, 16)),
    case("transformer", Transformer, (2, 6, 16), 2, loss="mse"),
    case("transformer_opset13", Transformer, (2, 6, 16), 2, dict(dynamo=False, opset_version=13), loss="mse"),
    case("bilstm", BiLSTM, (2, 7, 5), 3, loss="mse"),
    case("bilstm_opset14", BiLSTM, (2, 7, 5), 3, dict(dynamo=False, opset_version=14), loss="mse"),
    case("unet", UNet, (1, 3, 16, 16), 4, loss="mse"),
    case("shufflenet_like", ShuffleNet, (2, 3, 16, 16), 5, loss="mse"),
    case("mobilenet_like", MobileNet, (2, 3, 16, 16), 6),
    case("mobilenet_like_train", MobileNet, (2, 3, 16, 16), 6, TRAIN_OLD, True, "mse"),
    case("mlp_dropout", MLP, (4, 6), 7, loss="cross_entropy"),
    case("mlp_dropout_train", MLP, (4, 6), 7, TRAIN_NEW, True, keep_dropout=True),
]


# ---------------------------------------------------------------- helpers

def build(c):
    """The model of this case with its fixed weights. All values differ, so they can be told apart by their bytes."""
    torch.manual_seed(c.seed)
    model = c.model()
    with torch.no_grad():
        for m in model.modules():
            if isinstance(m, (nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm)):
                m.weight.uniform_(0.5, 1.5)
                m.bias.normal_(0, 0.3)
            if isinstance(m, nn.BatchNorm2d):
                m.running_mean.normal_(0, 0.3)
                m.running_var.uniform_(0.5, 1.5)
            if isinstance(m, nn.Dropout) and c.train and not c.keep_dropout:
                m.p = 0.0
    return model.train(c.train)


def write(path, array, name):
    path.parent.mkdir(parents=True, exist_ok=True)
    tensor = onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(np.shape(array)), name)
    path.write_bytes(tensor.SerializeToString())


def graphs_of(model):
    """The main graph, the functions, and every graph inside a node."""
    todo = [model.graph, *model.functions]
    while todo:
        g = todo.pop()
        yield g
        for node in g.node:
            for a in node.attribute:
                todo += [a.g] if a.HasField("g") else []
                todo += list(a.graphs)


def shorten_paths(model):
    """The exporter writes stack traces with this machine's folders into the nodes. Only the folders are cut."""
    def cut(text):
        text = re.sub(r'(?<=")[^"\n]*/site-packages/', "site-packages/", text)
        text = re.sub(r'(?<=")[^"\n]*/lib/python3\.\d+/', "python/", text)
        return text.replace(str(HERE) + "/", "")

    for g in graphs_of(model):
        for node in g.node:
            if node.doc_string:
                node.doc_string = cut(node.doc_string)
            for entry in node.metadata_props:
                entry.value = cut(entry.value)


def training_nodes(model):
    """Numbers of BatchNormalization, of those in training mode, of Dropout, of those in training mode."""
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    constants.update((n.output[0], onnx.numpy_helper.to_array(n.attribute[0].t))
                     for n in model.graph.node if n.op_type == "Constant" and n.attribute[0].name == "value")
    norms = [n for n in model.graph.node if n.op_type == "BatchNormalization"]
    drops = [n for n in model.graph.node if n.op_type == "Dropout"]
    return (len(norms), sum(any(a.name == "training_mode" and a.i == 1 for a in n.attribute) for n in norms),
            len(drops), sum(len(n.input) > 2 and bool(constants[n.input[2]]) for n in drops))


def probe_training():
    """Which options keep batch norm and dropout in training mode, found by trying them on mobilenet_like."""
    mode = torch.onnx.TrainingMode
    old = "dynamo=False, "
    tries = [
        ("", TRAIN_NEW), ("optimize=False", dict(TRAIN_NEW, optimize=False)),
        ("training=TrainingMode.TRAINING", dict(TRAIN_NEW, training=mode.TRAINING)),
        ("dynamo=False", dict(dynamo=False)),
        (old + "do_constant_folding=False", dict(dynamo=False, do_constant_folding=False)),
        (old + "training=TrainingMode.PRESERVE", dict(dynamo=False, training=mode.PRESERVE)),
        (old + "training=TrainingMode.TRAINING", dict(dynamo=False, training=mode.TRAINING)),
        (old + "training=TrainingMode.TRAINING, do_constant_folding=False", TRAIN_OLD)]
    lines = ["| options beside model.train() | BatchNormalization nodes | in training mode | Dropout nodes "
             "| in training mode |",
             "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "model.onnx")
        for text, options in tries:
            torch.manual_seed(0)
            extra = {} if options.get("dynamo", True) is False else dict(verbose=False)
            torch.onnx.export(MobileNet().train(), (torch.randn(2, 3, 16, 16),), path, **options, **extra)
            counts = " | ".join(map(str, training_nodes(onnx.load(path))))
            lines.append(f"| {'`' + text + '`' if text else 'none'} | {counts} |")
    return "\n".join(lines)


class LSTM(OpRun):
    """onnx.reference has no bidirectional LSTM. This one has what these models need: no peepholes, no sequence_lens."""
    op_domain = ""

    def _run(self, X, W, R, B=None, sequence_lens=None, initial_h=None, initial_c=None, P=None, **attributes):
        hidden = R.shape[-1]
        directions = W.shape[0]
        assert P is None and not attributes.get("layout") and directions in (1, 2)
        assert sequence_lens is None or sequence_lens.size == 0 or (sequence_lens == X.shape[0]).all()
        steps, batch, _ = X.shape
        Y = np.zeros((steps, directions, batch, hidden), X.dtype)
        Yh = np.zeros((directions, batch, hidden), X.dtype)
        Yc = np.zeros((directions, batch, hidden), X.dtype)
        reverse = attributes.get("direction") == "reverse"
        for d in range(directions):
            h = np.zeros((batch, hidden), X.dtype) if initial_h is None else initial_h[d]
            c = np.zeros((batch, hidden), X.dtype) if initial_c is None else initial_c[d]
            bias = 0 if B is None else B[d][:4 * hidden] + B[d][4 * hidden:]
            order = range(steps - 1, -1, -1) if d == 1 or reverse else range(steps)
            for t in order:
                gates = X[t] @ W[d].T + h @ R[d].T + bias
                i, o, f, g = np.split(gates, 4, axis=-1)
                i, o, f = (1 / (1 + np.exp(-v)) for v in (i, o, f))
                c = f * c + i * np.tanh(g)
                h = o * np.tanh(c)
                Y[t, d] = h
            Yh[d], Yc[d] = h, c
        return (Y, Yh, Yc)[:max(1, len(self.onnx_node.output))]


def evaluate(model, feeds):
    own = [LSTM] if any(n.op_type == "LSTM" for n in model.graph.node) else None
    return onnx.reference.ReferenceEvaluator(model, new_ops=own).run(None, feeds)


def loss_of(kind, output, target):
    return F.mse_loss(output, target) if kind == "mse" else F.cross_entropy(output, target)


def match(name, value, initializers):
    """(initializer's name, how) for this parameter: same, transposed, or reshaped (same bytes in another shape)."""
    same = [n for n, a in initializers.items() if a.shape == value.shape and a.tobytes() == value.tobytes()]
    turned = [n for n, a in initializers.items()
              if value.ndim == 2 and a.shape == value.T.shape and a.tobytes() == value.T.tobytes()]
    other = [n for n, a in initializers.items() if a.shape != value.shape and a.tobytes() == value.tobytes()]
    for found, how in ((same, "same"), (turned, "transposed"), (other, "reshaped")):
        if found:
            if len(found) > 1:
                found = [n for n in found if n == name] or found
                assert len(found) == 1, (name, found)
            return found[0], how
    return None, None


def packed_lstm(module, prefix, of):
    """The parameters of an LSTM as ONNX packs them: the directions stacked, the gates in the order i o f c, the biases joined."""
    hidden = module.hidden_size

    def turned(rows):  # PyTorch: i f g o
        i, f, g, o = np.split(rows, 4)
        return np.concatenate([i, o, f, g])

    directions = ["", "_reverse"] if module.bidirectional else [""]
    w = [turned(of(getattr(module, f"weight_ih_l0{d}"))) for d in directions]
    r = [turned(of(getattr(module, f"weight_hh_l0{d}"))) for d in directions]
    b = [np.concatenate([turned(of(getattr(module, f"bias_{kind}_l0{d}"))) for kind in ("ih", "hh")]) for d in directions]
    assert w[0].shape[0] == 4 * hidden
    return {prefix + ".W": np.stack(w), prefix + ".R": np.stack(r), prefix + ".B": np.stack(b)}


def parameters_of(model):
    """(name, value, gradient) of each parameter; those of an LSTM as they are packed."""
    packed = set()
    for prefix, module in model.named_modules():
        if isinstance(module, torch.nn.LSTM):
            values = packed_lstm(module, prefix, lambda p: p.detach().numpy())
            gradients = packed_lstm(module, prefix, lambda p: p.grad.numpy())
            packed.update(f"{prefix}.{name}" for name, _ in module.named_parameters())
            for name, value in values.items():
                yield name, value, gradients[name]
    for name, p in model.named_parameters():
        if name not in packed:
            yield name, p.detach().numpy(), p.grad.numpy()


def check_gradient(model, feeds, kind, target, name, gradient):
    """Moves one initializer along its gradient in the exported file; the loss must change as the gradient says."""
    losses = []
    length = float(np.linalg.norm(gradient.astype(np.float64)))
    if length < 1e-6:
        return 0.0
    size = 1e-3  # small, because ReLU and max pooling bend the loss
    for sign in (1, -1):
        moved = onnx.ModelProto()
        moved.CopyFrom(model)
        for t in moved.graph.initializer:
            if t.name == name:
                value = onnx.numpy_helper.to_array(t) + np.float32(sign * size / length) * gradient
                t.CopyFrom(onnx.numpy_helper.from_array(value.astype(np.float32), name))
        output = torch.from_numpy(np.array(evaluate(moved, feeds)[0])).double()
        losses.append(float(loss_of(kind, output, target.double() if kind == "mse" else target)))
    slope = (losses[0] - losses[1]) / (2 * size)
    return abs(slope - length) / max(length, 1e-2)


def options_text(c):
    words = ["model.train()" if c.train else "model.eval()"]
    for k, v in c.options.items():
        if k == "training":
            v = "torch.onnx.TrainingMode.TRAINING"
        elif k == "dynamic_shapes":
            v = '({0: Dim("batch")},)'
        words.append(f"{k}={v}")
    return ", ".join(words)


# ---------------------------------------------------------------- one model

def export(c):
    folder = HERE / c.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path = folder / "model.onnx"
    model = build(c)
    generator = torch.Generator().manual_seed(100 + c.seed)
    x = torch.randn(c.shape, generator=generator)
    stored = x if c.stored_shape == c.shape else torch.randn(c.stored_shape, generator=generator)

    # A copy is exported, because tracing in training mode moves the running statistics of batch norm.
    extra = {} if c.options.get("dynamo", True) is False else dict(verbose=False)
    torch.onnx.export(copy.deepcopy(model), (x,), str(path), **c.options, **extra)
    proto = onnx.load(path)
    shorten_paths(proto)
    path.write_bytes(proto.SerializeToString())
    onnx.checker.check_model(str(path), full_check=True)
    if c.train:  # The file must hold what training needs, or the options no longer do what README.md says.
        norms = sum(isinstance(m, nn.BatchNorm2d) for m in model.modules())
        drops = sum(isinstance(m, nn.Dropout) for m in model.modules())
        assert training_nodes(proto) == (norms, norms, drops, drops), (c.name, training_nodes(proto))
    initializers = {t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer}
    feeds = {proto.graph.input[0].name: stored.numpy()}
    assert len(proto.graph.input) == 1 and len(proto.graph.output) == 1
    write(folder / "inputs/0.pb", stored.numpy(), proto.graph.input[0].name)

    result = dict(case=c, difference=None, gradients=0, skipped=[], changed=[], slope=None)
    run = copy.deepcopy(model)
    output = run(stored)
    if not c.keep_dropout:
        write(folder / "outputs/0.pb", output.detach().numpy(), proto.graph.output[0].name)
        got = evaluate(proto, feeds)[0]
        result["difference"] = float(np.abs(got - output.detach().numpy()).max())
        assert got.shape == tuple(output.shape), c.name
        assert result["difference"] <= TOLERANCE, (c.name, result["difference"])

    if c.loss:
        if c.loss == "mse":
            target = torch.randn(output.shape, generator=generator)
        else:
            target = torch.randint(0, output.shape[1], (output.shape[0],), generator=generator)
        loss = loss_of(c.loss, output, target)
        loss.backward()
        write(folder / "training/target.pb", target.numpy(), "target")
        write(folder / "training/loss.pb", loss.detach().numpy(), "loss")
        (folder / "training/loss.txt").write_text(c.loss + "\n")
        slopes = [0.0]
        for name, value, gradient in parameters_of(run):
            found, how = match(name, value, initializers)
            if found is None:
                result["skipped"].append(name)
                continue
            if how == "transposed":
                gradient = np.ascontiguousarray(gradient.T)
            gradient = gradient.reshape(initializers[found].shape)
            if how != "same" or found != name:
                result["changed"].append(f"{name} is {found}" + ("" if how == "same" else f" ({how})"))
            write(folder / f"training/gradient_{result['gradients']}.pb", gradient, found)
            result["gradients"] += 1
            slopes.append(check_gradient(proto, feeds, c.loss, target, found, gradient))
        result["slope"] = max(slopes)
        assert result["slope"] < 0.05, (c.name, slopes)

    ops = collections.Counter(n.op_type if not n.domain else n.domain + "::" + n.op_type
                              for g in graphs_of(proto) for n in g.node)
    result.update(
        ops=ops, opset=", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in proto.opset_import),
        ir=proto.ir_version, bytes=path.stat().st_size, functions=len(proto.functions),
        options=options_text(c))

    line = f"{c.name}: exported with {result['options']}; {result['opset']}; ir_version {result['ir']}."
    if c.loss:
        line += f" Loss: {c.loss}; {result['gradients']} gradients."
        line += " Parameters without a gradient here, because the exporter packed them: "
        line += (", ".join(result["skipped"]) or "none") + "."
    (folder / "README").write_text(line + "\n")
    result["total"] = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    return result


# ---------------------------------------------------------------- the table and README.md

def table(results):
    lines = ["| model | opset | ir_version | op types | model bytes | folder bytes |", "|---|---|---|---|---|---|"]
    for r in results:
        ops = ", ".join(f"{k} {v}" for k, v in sorted(r["ops"].items()))
        lines.append(f"| {r['case'].name} | {r['opset']} | {r['ir']} | {ops} | {r['bytes']} | {r['total']} |")
    return "\n".join(lines)


def checks(results):
    lines = ["| model | mode | exported with | greatest difference of outputs | loss | gradients | slope error |",
             "|---|---|---|---|---|---|---|"]
    for r in results:
        c = r["case"]
        difference = "no outputs stored" if r["difference"] is None else f"{r['difference']:.1e}"
        slope = "" if r["slope"] is None else f"{r['slope']:.1e}"
        lines.append(f"| {c.name} | {'training' if c.train else 'evaluation'} | `{r['options']}` | {difference} | "
                     f"{c.loss or ''} | {r['gradients'] or ''} | {slope} |")
    return "\n".join(lines)


def parameters(results):
    lines = []
    for r in results:
        if not r["case"].loss:
            continue
        renamed = "; ".join(f"`{t}`" for t in r["changed"]) or "all kept"
        skipped = ", ".join(f"`{t}`" for t in r["skipped"]) or "none"
        lines.append(f"- **{r['case'].name}**: names: {renamed}. Skipped: {skipped}.")
    return "\n".join(lines)


def main():
    results = [export(c) for c in CASES]
    probe = probe_training()
    text = README.replace("@PROBE@", probe).replace("@TABLE@", table(results)).replace("@CHECKS@", checks(results))
    text = text.replace("@PARAMETERS@", parameters(results))
    versions = (f"Python {sys.version.split()[0]}, torch {torch.__version__.split('+')[0]}, onnx {onnx.__version__}, "
                f"onnxscript {onnxscript.__version__}, onnx_ir {onnx_ir.__version__}, numpy {np.__version__}")
    text = text.replace("@VERSIONS@", versions)
    (HERE / "README.md").write_text(text)
    print(table(results))
    print()
    print(checks(results))
    print()
    print(parameters(results))
    print()
    print(probe)
    total = 0
    for folder in (HERE / c.name for c in CASES):
        for f in (f for f in folder.rglob("*") if f.is_file()):
            data = f.read_bytes()
            total += len(data)
            for place in {str(HERE), sys.prefix}:
                assert place.encode() not in data, (f, place)
    print(f"\nall folders: {total} bytes")
    assert total < 600_000


README = """# ONNX files of PyTorch models

Small models with random weights, exported to ONNX by PyTorch, with the inputs, outputs, losses and gradients of
PyTorch. They show what an ONNX reader meets in files of today's exporter, and they give numbers to compare against.
The folders of other frameworks stand in [OTHERS.md](OTHERS.md).

To make the folder again:

    pip install torch onnx onnxscript
    python export.py

`export.py` also writes this file. Seeds are fixed, so the same versions write the same bytes. Versions used:
@VERSIONS@.

## What each folder holds

- `model.onnx`: the exported file. The only change made after the export is that folder names of the machine were cut
  from the stack traces in the nodes' metadata.
- `inputs/0.pb` and `outputs/0.pb`: serialized `TensorProto`; the name in it is the graph's input or output name.
  Outputs are those of PyTorch in the mode of the export.
- `training/target.pb`, `training/loss.pb`, `training/loss.txt`: a target, PyTorch's loss (mean over all elements for
  `mse`, mean over the batch for `cross_entropy`), and the loss's name. The int64 targets are class labels.
- `training/gradient_I.pb`: the gradient of the loss for one parameter. The name in it is the name of the initializer
  which holds that parameter, and the shape is the initializer's shape.
- `README`: one line on how the file was exported.

The models whose names end in `_train` were exported in training mode. Batch norm uses the statistics of the batch
there, and its initializers hold the running statistics from before the step. Dropout has probability 0 in
`mobilenet_like_train`, so that its results are determined. It has probability 0.5 in `mlp_dropout_train`, which
therefore has no outputs and no gradients. There are no gradients for the evaluation files of models with batch norm,
because the exporter folds batch norm into the convolutions. `resnet_block_dynamic` was exported with a batch of 2 and
a dynamic batch dimension; its stored input has a batch of 3.

## Models

@TABLE@

## Checks

Every file passes `onnx.checker` with full checks. `onnx.reference.ReferenceEvaluator` gives PyTorch's outputs; the
table has the greatest absolute difference. The evaluator has no bidirectional LSTM, so `export.py` brings one. Every
gradient was checked too: the initializer was moved along its gradient in both directions, and the change of the
evaluator's loss was compared with the gradient's length. The last column is the greatest relative error of that
float32 difference quotient.

@CHECKS@

## Names of parameters

The exporter renames some parameters or stores them in another form. A gradient is stored under the name and in the
form of the initializer. "Transposed" means that the initializer is the parameter's transpose; "reshaped" means the
same values in another shape. LSTM weights were skipped: the exporter reorders the gates from PyTorch's i, f, g, o to
ONNX's i, o, f, c and joins both directions into one tensor.

@PARAMETERS@

## Training mode

Exporting `mobilenet_like` (7 batch norms, 1 dropout) after `model.train()` with each of these options gave:

@PROBE@

So the default exporter keeps dropout in training mode, but it writes batch norm in evaluation mode and then folds it
into the convolutions. It only warns in general that the model is in training mode. Only the older exporter, with `dynamo=False` and
`training=torch.onnx.TrainingMode.TRAINING` or `PRESERVE`, keeps batch norm with `training_mode=1`.
`resnet_block_train` and `mobilenet_like_train` were made that way. `mlp_dropout_train` was made with the default
exporter. In PyTorch the running variance is updated with the unbiased variance of the batch; the ONNX operator
specifies the biased one. The outputs stored here do not depend on this.

## What to know about the files

- Folded batch norm: in the evaluation files `conv.weight` keeps the name of the parameter but holds the folded
  values, and a new `conv.weight_bias` appears. No BatchNormalization node is left.
- Not every float initializer is a parameter. `unet` has the ones and zeros of InstanceNormalization (`val_8`,
  `val_11`, shared by five nodes) and the scales of Resize (`val_92`); `bilstm` has the zero initial state (`val_16`,
  used twice); `mobilenet_like` has the bounds of Clip (`min_val_cast`, `max_val_cast`); `transformer` has the divisor
  of the attention scores (`val_26`); `mlp_dropout_train` has the dropout ratio (`val_0`).
- GroupNorm becomes Reshape, InstanceNormalization, Reshape, Mul, Add. The Mul and Add take the parameters, as
  C x 1 x 1.
- Two gradients are rounding noise: that of `attention.k.bias` in both transformers, because softmax cancels it, and
  that of `block1.layers.7.bias` in `mobilenet_like_train`, because the next batch norm cancels it.
- Shapes are constants: Reshape has the batch size written into it, except in `resnet_block_dynamic`.
- Linear becomes Gemm with transB=1 for inputs of rank 2, and MatMul with a transposed weight and Add for rank 3.
- Nodes of the default exporter have names such as `node_conv2d_1`, which say nothing about the module. The module path
  and the call site stand in the nodes' `metadata_props`: `namespace`, `pkg.torch.onnx.name_scopes`,
  `pkg.torch.onnx.class_hierarchy`, `pkg.torch.onnx.fx_node` and `pkg.torch.onnx.stack_trace` (file, line, function and
  source line of each frame, the outermost first). A node made by a fusion also has
  `pkg.onnxscript.rewriter.rule_name`. A convolution with folded batch norm carries the metadata of the batch norm.
- Nodes of the older exporter have no metadata. Their names are the module paths, such as `/block1/conv1/Conv`.
- The older exporter gives inputs and outputs names such as `input.1`, `input` and `72`. The default one takes the
  input's name from `forward` (`x`) and the output's name from the last operation (`linear`, `add_1`, `conv2d_5`).
- BatchNormalization in training mode names all three outputs; the second and third are used by no node and are no
  graph outputs.
"""

if __name__ == "__main__":
    main()
