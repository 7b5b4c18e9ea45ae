"""What the scripts for other frameworks than PyTorch share: they store a model with inputs, outputs and gradients to compare with."""

import itertools
import pathlib
import shutil

import numpy as np
import onnx
import onnx.numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
TOLERANCE = 1e-5


def write(path, array, name):
    path.parent.mkdir(parents=True, exist_ok=True)
    tensor = onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(np.shape(array)), name)
    path.write_bytes(tensor.SerializeToString())


def forms(value, gradient):
    """The forms in which exporters store a parameter: its dimensions in any order, or its elements in another shape."""
    for order in itertools.permutations(range(value.ndim)):
        yield value.transpose(order), gradient.transpose(order)


def find(proto, value, gradient):
    """The name of the initializer that holds this parameter, and the gradient in the form of the initializer."""
    for exact in (True, False):
        for tensor in proto.graph.initializer:
            held = onnx.numpy_helper.to_array(tensor)
            for v, g in forms(value, gradient):
                if (held.shape == v.shape or not exact) and held.size == v.size and held.dtype == v.dtype \
                        and held.tobytes() == v.tobytes():
                    return tensor.name, g.reshape(held.shape)
    return None, None


def store(name, proto, inputs, outputs, how, loss=None, target=None, loss_value=None, gradients=()):
    """`gradients` lists the values of parameters and their gradients, or the names of initializers and gradients in their form."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    names = {t.name for t in proto.graph.initializer}
    model_inputs = [v.name for v in proto.graph.input if v.name not in names]
    assert len(model_inputs) == len(inputs), model_inputs
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    for i, x in enumerate(inputs):
        write(folder / f"inputs/{i}.pb", x, model_inputs[i])
    for i, y in enumerate(outputs):
        write(folder / f"outputs/{i}.pb", y, proto.graph.output[i].name)
    missing, count = 0, 0
    if loss:
        write(folder / "training/target.pb", target, "target")
        write(folder / "training/loss.pb", np.asarray(loss_value, np.float32), "loss")
        (folder / "training/loss.txt").write_text(loss + "\n")
        for value, gradient in gradients:
            found, form = (value, gradient) if isinstance(value, str) else find(proto, np.asarray(value), np.asarray(gradient))
            if found is None:
                missing += 1
                continue
            write(folder / f"training/gradient_{count}.pb", np.ascontiguousarray(form), found)
            count += 1
    ops = sorted({n.op_type for n in proto.graph.node} | {n.op_type for f in proto.functions for n in f.node})
    sets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in proto.opset_import)
    line = f"{name}: {how}; {sets}; ir_version {proto.ir_version}; ops {', '.join(ops)}."
    if loss:
        line += f" Loss: {loss}; {count} gradients, {missing} parameters stand in no initializer."
    (folder / "README").write_text(line + "\n")
    total = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    print(line, f"{total} bytes")
    assert total < 60_000, name
