"""Estimators of scikit-learn: a small network that trains inside a memory budget.

>>> from plimsoll.sklearn import Classifier
>>> x, y = [[0.0], [0.1], [0.9], [1.0]] * 8, ["low", "low", "high", "high"] * 8
>>> Classifier(hidden_layer_sizes=(32,), budget="8MiB", random_state=1).fit(x, y).score(x, y)
1.0

The model is a Sequential of Dense layers, or what build(n_features, n_outputs) gives; after fit() it is model_.
"""
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

import plimsoll as pl


class _Estimator(BaseEstimator):
    def __init__(self, hidden_layer_sizes=(64,), activation="relu", optimizer="adam", learning_rate=0.01, epochs=50, batch_size=32,
                 budget=None, random_state=None, build=None, verbose=0):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.budget = budget
        self.random_state = random_state
        self.build = build
        self.verbose = verbose

    def _model(self, features, outputs, activation, loss):
        if self.build is not None:
            model = self.build(features, outputs)
        else:
            # Layers and the order of rows draw from seeds: the same numbers for the same random_state.
            seed = self._seed()
            sizes = [*self.hidden_layer_sizes, outputs]
            names = [self.activation] * len(self.hidden_layer_sizes) + [activation]
            layers = [pl.layers.Dense(int(size), activation=name, seed=None if seed is None else seed + 10 * place,
                                      **({"input_shape": (features,)} if place == 0 else {}))
                      for place, (size, name) in enumerate(zip(sizes, names))]
            model = pl.Sequential(layers)
        if not model.is_compiled:
            optimizer = pl.optimizers.get(self.optimizer) if isinstance(self.optimizer, str) else self.optimizer
            if self.learning_rate is not None:
                optimizer.learning_rate = self.learning_rate
            model.compile(optimizer=optimizer, loss=loss)
        return model

    def _seed(self):
        if self.random_state is None:
            return None
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2 ** 31))
        return int(self.random_state)

    def _train(self, x, y, weights=None):
        order = np.random.RandomState(self._seed()).permutation(len(x)) if self.random_state is not None else slice(None)
        if weights is not None:
            weights = _check_sample_weight(weights, x, dtype="float32", ensure_non_negative=True)
            if not weights.any():
                raise ValueError("sample_weight: all weights are zero")
            weights = np.ascontiguousarray(weights[order])
        self.history_ = self.model_.fit(np.ascontiguousarray(x[order]), np.ascontiguousarray(y[order]), epochs=self.epochs,
                                        batch_size=min(self.batch_size, len(x)), verbose=self.verbose, budget=self.budget,
                                        sample_weight=weights, shuffle=self.random_state is None).history
        self.n_iter_ = self.epochs
        return self

    def _outputs(self, x):
        check_is_fitted(self, "model_")
        x = validate_data(self, x, reset=False, dtype="float32")
        return np.array(self.model_.predict(x, batch_size=max(self.batch_size, 1)).numpy())

    # A model is not pickled, its weights are.
    def __getstate__(self):
        state = dict(super().__getstate__())
        if "model_" in state:
            state["model_"] = None
            state["_weights"] = [np.array(w.numpy()) for w in self.model_.get_weights()]
        return state

    def __setstate__(self, state):
        weights = state.pop("_weights", None)
        super().__setstate__(state)
        if weights is not None:
            self.model_ = self._model(self.n_features_in_, self._n_outputs, self._output_activation, self._loss)
            self.model_.set_weights(weights)


class Classifier(ClassifierMixin, _Estimator):
    """A network that tells classes apart.

    >>> from plimsoll.sklearn import Classifier
    >>> Classifier(epochs=100, random_state=1).fit([[0.0], [1.0]] * 16, ["no", "yes"] * 16).predict([[1.0]]).tolist()
    ['yes']
    """

    _output_activation = "softmax"
    _loss = "sparse_categorical_crossentropy"

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y, dtype="float32")
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        self._n_outputs = max(len(self.classes_), 2)
        self.model_ = self._model(X.shape[1], self._n_outputs, self._output_activation, self._loss)
        return self._train(X, labels.astype("int64"), sample_weight)

    def predict_proba(self, X):
        return self._outputs(X)[:, :len(self.classes_)]

    def predict(self, X):
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]


class Regressor(RegressorMixin, _Estimator):
    """A network that gives numbers.

    >>> from plimsoll.sklearn import Regressor
    >>> fitted = Regressor(epochs=100, random_state=1).fit([[0.0], [1.0]] * 16, [1.0, 3.0] * 16)
    >>> bool(abs(fitted.predict([[1.0]])[0] - 3) < 0.5)
    True
    """

    _output_activation = "linear"
    _loss = "mse"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y, dtype="float32", multi_output=True, y_numeric=True)
        self._is_vector = y.ndim == 1
        y = y.astype("float32").reshape(len(y), -1)
        self._n_outputs = y.shape[1]
        self.model_ = self._model(X.shape[1], self._n_outputs, self._output_activation, self._loss)
        return self._train(X, y, sample_weight)

    def predict(self, X):
        y = self._outputs(X).astype("float64")
        return y[:, 0] if self._is_vector else y
