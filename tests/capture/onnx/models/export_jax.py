#!/usr/bin/env python3
"""Exports small JAX models to ONNX, with the outputs and gradients of JAX to compare against.

Run with:  pip install jax flax jax2onnx && python export_jax.py
It writes one folder per model beside this file.
"""

import importlib.metadata

import flax
import jax
import jax.numpy as jnp
import jax2onnx
import numpy as np
from flax import nnx

from stored import store


class Mlp(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(6, 10, rngs=rngs)
        self.second = nnx.Linear(10, 4, rngs=rngs)

    def __call__(self, x):
        return self.second(nnx.gelu(self.first(x)))


class ConvNet(nnx.Module):
    def __init__(self, rngs):
        self.conv1 = nnx.Conv(3, 4, (3, 3), rngs=rngs)
        self.conv2 = nnx.Conv(4, 6, (3, 3), strides=(2, 2), padding="VALID", rngs=rngs)
        self.norm = nnx.GroupNorm(6, num_groups=2, rngs=rngs)
        self.out = nnx.Linear(6, 3, rngs=rngs)

    def __call__(self, x):
        x = nnx.max_pool(nnx.relu(self.conv1(x)), window_shape=(2, 2), strides=(2, 2))
        x = nnx.silu(self.norm(self.conv2(x)))
        return self.out(x.mean(axis=(1, 2)))


class Block(nnx.Module):
    def __init__(self, rngs):
        self.norm1 = nnx.LayerNorm(8, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, 8, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(8, rngs=rngs)
        self.up = nnx.Linear(8, 16, rngs=rngs)
        self.down = nnx.Linear(16, 8, rngs=rngs)

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


MODELS = [("jax_mlp", Mlp, (4, 6), "cross_entropy"), ("jax_conv", ConvNet, (2, 10, 10, 3), "mse"),
          ("jax_transformer", Block, (2, 5, 8), "mse")]


def loss_of(kind, output, target):
    if kind == "mse":
        return ((output - target) ** 2).mean()
    return -jnp.take_along_axis(jax.nn.log_softmax(output), target[:, None], 1).mean()


def main():
    for seed, (name, model_class, shape, kind) in enumerate(MODELS):
        model = model_class(nnx.Rngs(seed))
        graph, state = nnx.split(model)
        keys = iter(jax.random.split(jax.random.key(100 + seed), 100))
        # All values differ, so that parameters can be told apart by their bytes.
        state = jax.tree.map(lambda v: v + 0.1 * jax.random.normal(next(keys), v.shape) if v.dtype == jnp.float32 else v, state)
        model = nnx.merge(graph, state)
        x = jax.random.normal(next(keys), shape)
        proto = jax2onnx.to_onnx(model, [shape], model_name=name)
        output = model(x)
        if kind == "mse":
            target = jax.random.normal(next(keys), output.shape)
        else:
            target = jnp.arange(output.shape[0], dtype=jnp.int32) % output.shape[1]
        value, gradients = jax.value_and_grad(lambda s: loss_of(kind, nnx.merge(graph, s)(x), target), allow_int=True)(state)
        pairs = [(np.asarray(v), np.asarray(g)) for v, g in zip(jax.tree.leaves(state), jax.tree.leaves(gradients))
                 if v.dtype == jnp.float32]
        how = f"jax2onnx {importlib.metadata.version('jax2onnx')}, jax {jax.__version__}, flax {flax.__version__}, to_onnx"
        target = np.asarray(target) if kind == "mse" else np.asarray(target).astype(np.int64)
        store(name, proto, [np.asarray(x)], [np.asarray(output)], how, kind, target, value, pairs)


if __name__ == "__main__":
    main()
