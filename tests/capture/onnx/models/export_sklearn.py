#!/usr/bin/env python3
"""Exports small scikit-learn models to ONNX, with the outputs of scikit-learn to compare against.

Run with:  pip install scikit-learn skl2onnx && python export_sklearn.py
It writes one folder per model beside this file. Inputs are f32; scikit-learn computes in f64.
"""

import warnings

import numpy as np
import sklearn
import skl2onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

from stored import store

warnings.simplefilter("ignore")
ROWS = 5


def labels_and_probabilities(model, x):
    return [model.predict(x).astype(np.int64), model.predict_proba(x).astype(np.float32)]


def values(model, x):
    return [model.predict(x).reshape(len(x), -1).astype(np.float32)]


def classes(count, seed):
    x, y = make_classification(60, 6, n_informative=4, n_classes=count, random_state=seed)
    return x.astype(np.float32), y


def numbers(targets, seed):
    x, y = make_regression(60, 6, n_targets=targets, random_state=seed)
    return x.astype(np.float32), y / 100


MODELS = [
    ("sklearn_mlp_classifier", make_pipeline(StandardScaler(), MLPClassifier((8, 6), max_iter=60, random_state=1)), classes(3, 1),
     labels_and_probabilities, True),
    ("sklearn_mlp_binary", make_pipeline(MinMaxScaler(), MLPClassifier((5,), activation="tanh", max_iter=60, random_state=2)),
     classes(2, 2), labels_and_probabilities, False),
    ("sklearn_mlp_regressor", make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(7,), max_iter=60, random_state=3)), numbers(1, 3),
     values, None),
    ("sklearn_logistic", make_pipeline(StandardScaler(), LogisticRegression()), classes(3, 4), labels_and_probabilities, False),
    ("sklearn_logistic_binary", make_pipeline(Normalizer("l2"), LogisticRegression()), classes(2, 5), labels_and_probabilities,
     True),
    ("sklearn_ridge", make_pipeline(PCA(4, random_state=6), PolynomialFeatures(2), Ridge()), numbers(2, 6), values, None),
    ("sklearn_linear", make_pipeline(StandardScaler(), LinearRegression()), numbers(1, 7), values, None),
    ("sklearn_svr", make_pipeline(StandardScaler(), SVR(gamma=0.2)), numbers(1, 8), values, None),
]


def main():
    for name, model, (x, y), outputs, zipmap in MODELS:
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        model.fit(x, y)
        options = {} if zipmap is None else {"zipmap": zipmap}
        proto = skl2onnx.convert_sklearn(model, name, [("x", FloatTensorType([ROWS, 6]))],
                                         options={id(model.steps[-1][1]): options} if options else None)
        rows = x[:ROWS]
        how = f"convert_sklearn{'' if zipmap is None else f'(zipmap={zipmap})'} of {' + '.join(type(s).__name__ for _, s in model.steps)}"
        store(name, proto, [rows], outputs(model, rows), f"skl2onnx {skl2onnx.__version__}, scikit-learn {sklearn.__version__}, {how}")


if __name__ == "__main__":
    main()
