"""Calls of SciPy and scikit-learn on tensors and on NumPy arrays; prints what differs, as JSON.

A program of its own, because SciPy looks for SCIPY_ARRAY_API when it is imported.
"""

import json
import os
import sys
import traceback
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import scipy.cluster.vq
import scipy.constants
import scipy.differentiate
import scipy.fft
import scipy.integrate
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats

import tensorplug as tp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
POSITIVE = np.abs(X) + 0.1
Y = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(np.int64)


def scipy_cases(a, m):
    """Calls by name; `a` makes an array, `m` is its namespace."""
    s = scipy
    x, p = a(X), a(POSITIVE)
    return {
        "fft": lambda: s.fft.fftn(x),
        "rfft": lambda: s.fft.rfft(x, axis=0),
        "dct": lambda: s.fft.dct(x),
        "erf": lambda: s.special.erf(x),
        "logsumexp": lambda: s.special.logsumexp(x, axis=0),
        "softmax": lambda: s.special.softmax(x, axis=0),
        "gammaln": lambda: s.special.gammaln(p),
        "xlogy": lambda: s.special.xlogy(p, p),
        "zscore": lambda: s.stats.zscore(x),
        "skew": lambda: s.stats.skew(x),
        "kurtosis": lambda: s.stats.kurtosis(x),
        "gmean": lambda: s.stats.gmean(p),
        "ttest_ind": lambda: s.stats.ttest_ind(x[:20, ...], x[20:, ...]).pvalue,
        "pearsonr": lambda: s.stats.pearsonr(x[:, 0], x[:, 1]).statistic,
        "entropy": lambda: s.stats.entropy(p),
        "jarque_bera": lambda: s.stats.jarque_bera(x[:, 0]).statistic,
        "rankdata": lambda: s.stats.rankdata(x),
        "kmeans2": lambda: s.cluster.vq.kmeans2(x, x[:3, ...], seed=1)[0],
        "whiten": lambda: s.cluster.vq.whiten(x),
        "detrend": lambda: s.signal.detrend(x, axis=0),
        "fftconvolve": lambda: s.signal.fftconvolve(x[:, 0], x[:, 1]),
        "hilbert": lambda: s.signal.hilbert(x[:, 0]),
        "temperature": lambda: s.constants.convert_temperature(x, "Celsius", "Kelvin"),
        "derivative": lambda: s.differentiate.derivative(m.sin, x[:, 0]).df,
        "tanhsinh": lambda: s.integrate.tanhsinh(m.exp, a(np.zeros(2)), a(np.ones(2))).integral,
        "gaussian_filter": lambda: s.ndimage.gaussian_filter(x, 1.0),
    }


def sklearn_cases(a, m):
    """Calls by name; `m` is not needed, scikit-learn finds it itself."""
    from sklearn import linear_model, metrics, mixture, model_selection, preprocessing
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    x, y = a(X), a(Y)
    guess = a((Y + (X[:, 1] > 1)) % 2)
    score = a(POSITIVE[:, 0] / 10)
    lda = LinearDiscriminantAnalysis(solver="svd")
    binary = ["accuracy_score", "confusion_matrix", "f1_score", "hamming_loss", "precision_score"]
    binary += ["recall_score", "jaccard_score", "zero_one_loss"]
    regression = ["explained_variance_score", "max_error", "mean_absolute_error", "r2_score"]
    regression += ["mean_squared_error", "median_absolute_error"]
    ranking = ["average_precision_score", "brier_score_loss", "log_loss", "roc_auc_score"]
    pairwise = ["cosine_similarity", "euclidean_distances", "rbf_kernel"]

    def pca(solver, **options):
        return lambda: abs(PCA(3, svd_solver=solver, **options).fit(x).transform(x))

    def bind(function, *args):
        return lambda: function(*args)

    return {
        "PCA full": pca("full"),
        "PCA covariance": pca("covariance_eigh", whiten=True),
        "PCA randomized": pca("randomized", power_iteration_normalizer="QR", random_state=0),
        "LDA predict": lambda: lda.fit(x, y).predict(x),
        "LDA probabilities": lambda: lda.fit(x, y).predict_proba(x),
        "LDA transform": lambda: abs(lda.fit(x, y).transform(x)),
        "StandardScaler": lambda: preprocessing.StandardScaler().fit_transform(x),
        "MinMaxScaler": lambda: preprocessing.MinMaxScaler().fit_transform(x),
        "LabelEncoder": lambda: preprocessing.LabelEncoder().fit_transform(y),
        "PolynomialFeatures": lambda: preprocessing.PolynomialFeatures().fit_transform(x),
        "Ridge": lambda: linear_model.Ridge(solver="svd").fit(x, x[:, 0]).predict(x),
        "GaussianMixture": lambda: (
            mixture.GaussianMixture(2, init_params="random", random_state=0).fit(x).means_
        ),
        "cross_val_predict": lambda: model_selection.cross_val_predict(lda, x, y),
        "train_test_split": lambda: model_selection.train_test_split(x, random_state=0)[0],
        **{name: bind(getattr(metrics, name), y, guess) for name in binary},
        **{name: bind(getattr(metrics, name), x[:, 0], x[:, 1]) for name in regression},
        **{name: bind(getattr(metrics, name), y, score) for name in ranking},
        **{name: bind(getattr(metrics.pairwise, name), x, x) for name in pairwise},
    }


def difference(call, reference):
    """What is wrong with a result, or None."""
    try:
        found, expected = call(), np.asarray(reference())
        if expected.ndim and not isinstance(found, tp.Tensor):
            return f"is a {type(found).__name__}, expected a Tensor"
        values = found.numpy() if isinstance(found, tp.Tensor) else np.asarray(found)
        if values.shape != expected.shape:
            return f"has shape {values.shape}, expected {expected.shape}"
        if not np.allclose(values, expected, atol=1e-7, equal_nan=True):
            return f"is off by {np.abs(values - expected).max()}"
    except Exception:
        return traceback.format_exc()
    return None


def main(library):
    warnings.simplefilter("error")
    if library == "sklearn":
        from sklearn import config_context

        cases, context = sklearn_cases, config_context(array_api_dispatch=True)
    else:
        from contextlib import nullcontext

        cases, context = scipy_cases, nullcontext()
    with context:
        ours = cases(tp.tensor, tp.ones(1).__array_namespace__())
        theirs = cases(np.asarray, np)
        return {name: difference(ours[name], theirs[name]) for name in ours}


if __name__ == "__main__":
    json.dump(main(sys.argv[1]), sys.stdout)
