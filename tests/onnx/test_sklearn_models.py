"""Models that skl2onnx writes: labels and scores equal those of scikit-learn."""

import warnings

import numpy as np
import pytest

import tensorplug as tp

pytest.importorskip("onnx")
pytest.importorskip("sklearn")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    skl2onnx = pytest.importorskip("skl2onnx")

from sklearn import (
    cluster,
    compose,
    decomposition,
    discriminant_analysis,
    ensemble,
    impute,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

pytestmark = pytest.mark.filterwarnings("ignore")

CLASSIFIERS = {
    "logistic": lambda: linear_model.LogisticRegression(),
    "ridge": lambda: linear_model.RidgeClassifier(),
    "sgd": lambda: linear_model.SGDClassifier(random_state=0),
    "perceptron": lambda: linear_model.Perceptron(random_state=0),
    "lda": lambda: discriminant_analysis.LinearDiscriminantAnalysis(),
    "tree": lambda: tree.DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": lambda: ensemble.RandomForestClassifier(8, max_depth=5, random_state=0),
    "extra": lambda: ensemble.ExtraTreesClassifier(8, max_depth=5, random_state=0),
    "boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0),
    "svc": lambda: svm.SVC(),
    "svc probability": lambda: svm.SVC(probability=True, random_state=0),
    "linear svc": lambda: svm.LinearSVC(),
    "bayes": lambda: naive_bayes.GaussianNB(),
    "neighbours": lambda: neighbors.KNeighborsClassifier(3),
    "perceptrons": lambda: neural_network.MLPClassifier((8,), max_iter=20, random_state=0),
    "bagging": lambda: ensemble.BaggingClassifier(n_estimators=3, random_state=0),
    "scaled": lambda: pipeline.make_pipeline(
        preprocessing.StandardScaler(), decomposition.PCA(3), linear_model.LogisticRegression()
    ),
}
REGRESSORS = {
    "linear": lambda: linear_model.LinearRegression(),
    "lasso": lambda: linear_model.Lasso(0.01),
    "tree": lambda: tree.DecisionTreeRegressor(max_depth=5, random_state=0),
    "forest": lambda: ensemble.RandomForestRegressor(8, max_depth=5, random_state=0),
    "boosting": lambda: ensemble.GradientBoostingRegressor(n_estimators=5, random_state=0),
    "svr": lambda: svm.SVR(),
    "polynomial svr": lambda: svm.SVR(kernel="poly", degree=2),
    "perceptrons": lambda: neural_network.MLPRegressor(
        hidden_layer_sizes=(8,), max_iter=20, random_state=0
    ),
    "neighbours": lambda: neighbors.KNeighborsRegressor(3),
}
TRANSFORMERS = {
    "scaler": lambda: preprocessing.StandardScaler(),
    "min max": lambda: preprocessing.MinMaxScaler(),
    "normalizer": lambda: preprocessing.Normalizer(),
    "binarizer": lambda: preprocessing.Binarizer(threshold=0.3),
    "polynomial": lambda: preprocessing.PolynomialFeatures(2),
    "imputer": lambda: impute.SimpleImputer(),
    "one-hot": lambda: pipeline.make_pipeline(
        preprocessing.KBinsDiscretizer(3, encode="onehot-dense", quantile_method="linear")
    ),
    "pca": lambda: decomposition.PCA(2),
    "kmeans": lambda: cluster.KMeans(3, random_state=0, n_init=1),
    "columns": lambda: compose.ColumnTransformer(
        [("a", preprocessing.StandardScaler(), [0, 1]), ("b", preprocessing.MinMaxScaler(), [2])]
    ),
}


def data(classes):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 4)).astype(np.float32)
    y = (x @ rng.normal(size=(4, classes))).argmax(1)
    return x, y


def converted(model, x, **options):
    proto = skl2onnx.to_onnx(model, x[:1], options=(options and {id(model): options}) or None)
    return tp.onnx.load(proto.SerializeToString())


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, classes):
    x, y = data(classes)
    model = CLASSIFIERS[name]().fit(x, y)
    options = (
        {} if name in ("svc", "linear svc", "ridge", "sgd", "perceptron") else {"zipmap": False}
    )
    module = converted(model, x, **options)
    label, scores = module(tp.from_numpy(x))
    assert label.tolist() == model.predict(x).tolist()
    if options and (name, classes) != (
        "lda",
        2,
    ):
        # Whose scores skl2onnx writes doubled before the sigmoid.
        expected = model.predict_proba(x)
        np.testing.assert_allclose(scores.detach().numpy(), expected, rtol=1e-3, atol=2e-5)


def test_labels_that_are_strings_and_maps_of_scores():
    x, y = data(3)
    names = np.array(["red", "green", "blue"])[y]
    model = linear_model.LogisticRegression().fit(x, names)
    label, scores = converted(model, x)(tp.from_numpy(x))
    assert label == model.predict(x).tolist()
    expected = model.predict_proba(x)
    for row, wanted in zip(scores, expected, strict=True):
        assert list(row) == model.classes_.tolist()
        np.testing.assert_allclose(list(row.values()), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name):
    x, _ = data(2)
    y = x[:, 0] * 2 + np.sin(x[:, 1])
    model = REGRESSORS[name]().fit(x, y)
    found = converted(model, x)(tp.from_numpy(x))
    np.testing.assert_allclose(found.detach().numpy()[:, 0], model.predict(x), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers(name):
    x, _ = data(2)
    if name == "imputer":
        x[::7, 1] = np.nan
    model = TRANSFORMERS[name]().fit(x)
    found = converted(model, x)(tp.from_numpy(x))
    if name == "kmeans":
        label, distances = found
        assert label.tolist() == model.predict(x).tolist()
        found = distances
    expected = model.transform(x)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-3, atol=1e-5)


def test_a_linear_model_and_a_forest_train():
    x, y = data(2)
    target = tp.from_numpy(x[:, 0] * 3)
    for model in (
        linear_model.LinearRegression(),
        ensemble.RandomForestRegressor(4, random_state=0),
    ):
        module = converted(model.fit(x, y), x)
        optimizer = tp.optim.Adam(module.parameters(), lr=0.05)
        losses = []
        for _ in range(20):
            loss = ((module(tp.from_numpy(x))[:, 0] - target) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.5 * losses[0]
