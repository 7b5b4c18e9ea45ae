#!/usr/bin/env python3
"""Exports small Keras models to ONNX, with the outputs and gradients of TensorFlow to compare against.

Run with:  pip install tensorflow-cpu tf2onnx && python export_keras.py
It writes one folder per model beside this file.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf
import tf2onnx

from stored import store

layers = tf.keras.layers


def gelu(x):
    """tf2onnx has no counterpart of the op Erfc, of which the exact one is made."""
    return tf.keras.activations.gelu(x, approximate=True)


def dense():
    return [layers.Dense(8, activation="relu"), layers.Dropout(0.3), layers.Dense(3)]


def conv():
    return [layers.Conv2D(4, 3, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(2),
            layers.DepthwiseConv2D(3, padding="same"), layers.Conv2D(6, 3, strides=2, activation="swish"),
            layers.GlobalAveragePooling2D(), layers.Dense(3)]


def lstm():
    return [layers.LSTM(5, return_sequences=True), layers.LSTM(4), layers.Dense(2)]


def gru():
    return [layers.Bidirectional(layers.GRU(4)), layers.Dense(2)]


def attention(x):
    y = layers.LayerNormalization()(x)
    y = x + layers.MultiHeadAttention(2, 4)(y, y)
    z = layers.Dense(16, activation=gelu)(layers.LayerNormalization()(y))
    return y + layers.Dense(8)(z)


def chain(parts):
    def call(x):
        for part in parts():
            x = part(x)
        return x
    return call


MODELS = [("keras_dense", chain(dense), (4, 6), "cross_entropy"), ("keras_conv", chain(conv), (2, 12, 12, 3), None),
          ("keras_lstm", chain(lstm), (2, 6, 3), "mse"), ("keras_gru", chain(gru), (2, 6, 3), "mse"),
          ("keras_attention", attention, (2, 5, 8), "mse")]


def turned(rows):
    """The gates of Keras, i f c o, in the order of ONNX."""
    i, f, c, o = np.split(rows, 4)
    return np.concatenate([i, o, f, c])


def packed(kind, values, second_half):
    """The parameters of layers as ONNX holds them: those of an LSTM have one more dimension, and two biases that are added. The
    second one is zero; its gradient is that of the first one."""
    if kind != "keras_lstm":
        return values
    result = []
    for at in (0, 3):
        kernel, recurrent, bias = values[at:at + 3]
        result += [turned(kernel.T)[None], turned(recurrent.T)[None], np.concatenate([turned(bias), second_half * turned(bias)])[None]]
    return result + values[6:]


def loss_of(kind, output, target):
    if kind == "mse":
        return tf.reduce_mean((output - target) ** 2)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(target, output))


def main():
    for seed, (name, make, shape, kind) in enumerate(MODELS):
        tf.keras.utils.set_random_seed(seed)
        x_in = tf.keras.Input(shape[1:], batch_size=shape[0], name="x")
        model = tf.keras.Model(x_in, make(x_in))
        random = np.random.default_rng(seed)
        for v in model.variables:
            if "float" in str(v.dtype):
                v.assign(v + random.uniform(0.02, 0.3, v.shape))
        x = random.standard_normal(shape).astype(np.float32)
        proto, _ = tf2onnx.convert.from_keras(model, [tf.TensorSpec(shape, tf.float32, "x")], opset=18)
        stored = {}
        with tf.GradientTape() as tape:
            output = model(x, training=False)
            if kind:
                target = random.standard_normal(output.shape).astype(np.float32) if kind == "mse" else \
                    np.arange(shape[0], dtype=np.int64) % output.shape[1]
                loss = loss_of(kind, output, target)
                stored = dict(loss=kind, target=target)
        if kind:
            variables = model.trainable_variables
            gradients = tape.gradient(loss, variables)
            pairs = list(zip(packed(name, [v.numpy() for v in variables], 0), packed(name, [g.numpy() for g in gradients], 1)))
            stored.update(loss_value=loss.numpy(), gradients=pairs)
        how = f"tf2onnx {tf2onnx.__version__}, tensorflow {tf.__version__}, from_keras"
        store(name, proto, [x], [output.numpy()], how, **stored)


if __name__ == "__main__":
    main()
