"""What pandas and scikit-learn give, and estimators that scikit-learn takes."""
import os
import pickle

import pytest

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # Without it scikit-learn skips a check.

import plimsoll as pl

np = pytest.importorskip("numpy")


def test_fit_and_predict_take_frames_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.arange(32.0), "b": np.arange(32), "c": np.ones(32, "float32")})
    target = pandas.Series(np.arange(32) % 2)
    model = pl.Sequential([pl.layers.Dense(4, activation="relu", input_shape=(3,)), pl.layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(frame, target, verbose=0, validation_data=(frame, target))
    assert model.predict(frame).shape == (32, 1) and pl.asarray(frame["b"]).dtype == pl.int64
    table = pandas.get_dummies(pandas.DataFrame({"a": [0.5, 1.5, 2.5], "kind": ["x", "y", "x"]}))  # Numbers and truths.
    assert pl.asarray(table).tolist() == [[0.5, 1, 0], [1.5, 0, 1], [2.5, 1, 0]] and model.predict(table).shape == (3, 1)
    nullable = pandas.DataFrame({"a": pandas.array([1, None], dtype="Int64"), "b": [True, False]})
    assert np.isnan(pl.asarray(nullable).numpy()).tolist() == [[False, False], [True, False]]
    with pytest.raises(TypeError, match="'kind'"):
        pl.asarray(pandas.DataFrame({"a": [0.5], "kind": ["x"]}))
    with pytest.raises(TypeError, match="astype"):
        model.fit(pandas.DataFrame({"a": ["x", "y"]}), target[:2], verbose=0)


sklearn = pytest.importorskip("sklearn")
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from plimsoll.sklearn import Classifier, Regressor  # noqa: E402


# Training goes by batches, so that a row of weight 2 is not two rows: its kind does not allow these.
EXPECTED = {"check_sample_weight_equivalence_on_dense_data": "steps are taken by batches",
            "check_sample_weight_equivalence_on_sparse_data": "steps are taken by batches"}


@parametrize_with_checks([Classifier(hidden_layer_sizes=(32,), epochs=60, random_state=0), Regressor(hidden_layer_sizes=(32,), epochs=60, random_state=0)],
                         expected_failed_checks=lambda estimator: EXPECTED)
def test_estimators_pass_scikit_learns_checks(estimator, check):
    check(estimator)


def test_estimators_train_inside_of_a_budget_in_pipelines():
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = np.random.default_rng(0).normal(size=(120, 4))
    y = np.where(x[:, 0] + x[:, 1] > 0, "yes", "no")
    pipeline = make_pipeline(StandardScaler(), Classifier(epochs=20, budget="4MiB", random_state=1))
    assert cross_val_score(pipeline, x, y, cv=3).mean() > 0.8
    fitted = Classifier(epochs=5, random_state=1).fit(x, y)
    assert (pickle.loads(pickle.dumps(fitted)).predict(x) == fitted.predict(x)).all()
    with pytest.raises(MemoryError):
        Classifier(budget="1KiB").fit(x, y)
