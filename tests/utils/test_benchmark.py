"""utils.benchmark beside torch's, on times that are given: no clock is read."""

import random

import pytest

import tensorplug as tp

theirs = pytest.importorskip("torch.utils.benchmark", reason="the tables to compare with")
common = pytest.importorskip("torch.utils.benchmark.utils.common")
ours = tp.utils.benchmark


def measurements(m, seed):
    rng = random.Random(seed)
    spec = m.TaskSpec if m is ours else common.TaskSpec
    found = []
    for label in ("one", None)[: rng.randrange(1, 3)]:
        for threads in (1, 4)[: rng.randrange(1, 3)]:
            for row in ("first", "second, longer", None):
                for column in ("a", "column b"):
                    if rng.random() < 0.2:
                        continue
                    base = 10 ** rng.uniform(-5, -3)
                    spread = rng.choice((1.01, 1.3, 2))
                    times = [base * rng.uniform(1, spread) for _ in range(rng.choice((1, 3, 9)))]
                    task = spec("f(x)", "x = 1", "", label, row, column, None, threads)
                    found.append(m.Measurement(rng.choice((1, 10)), times, task))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_statistics_and_tables(seed):
    pairs = list(zip(measurements(theirs, seed), measurements(ours, seed), strict=True))
    for a, b in pairs:
        assert b.median == pytest.approx(a.median, rel=1e-12)
        assert b.mean == pytest.approx(a.mean, rel=1e-12)
        assert b.iqr == pytest.approx(a.iqr, rel=1e-6, abs=1e-18)
        assert (b.significant_figures, b.has_warnings, b.title, b.as_row_name, b.times) == (
            a.significant_figures, a.has_warnings, a.title, a.as_row_name, a.times
        )  # fmt: skip
        assert repr(b).splitlines()[1:] == repr(a).splitlines()[1:]
    for change in ("", "trim_significant_figures", "colorize", "highlight_warnings"):
        tables = [theirs.Compare([a for a, _ in pairs]), ours.Compare([b for _, b in pairs])]
        if change:
            for table in tables:
                getattr(table, change)()
        assert str(tables[1]) == str(tables[0])


class Clock:
    """A clock that goes on by so much at each look."""

    def __init__(self, step):
        self.step, self.now = step, 0.0

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.mark.parametrize("step", [0.06, 0.3])  # each look takes longer than a block has to
@pytest.mark.parametrize("method", ["timeit", "blocked_autorange", "adaptive_autorange"])
def test_timers(step, method):
    results = []
    for m in (theirs, ours):
        measured = m.Timer("pass", timer=Clock(step), label="l", num_threads=1)
        options = {"number": 50} if method == "timeit" else {"min_run_time": 0.05}
        result = getattr(measured, method)(**options)
        results.append((result.number_per_run, len(result.raw_times), result.median))
    assert results[1] == pytest.approx(results[0])


def test_statements_see_their_names_and_threads():
    seen = []
    threads = tp.get_num_threads()
    ours.Timer(
        "seen.append(torch.get_num_threads())", globals={"seen": seen}, num_threads=2
    ).timeit(3)
    assert set(seen) == {2}
    assert tp.get_num_threads() == threads
    for options in ({"language": "c++"}, {"language": "x"}, {"global_setup": "x"}, {"stmt": 1}):
        with pytest.raises((NotImplementedError, ValueError)):
            ours.Timer(**options)


def test_helpers():
    for t in (3e-9, 4.4e-6, 0.02, 1.0, 50.0):
        assert ours.select_unit(t) == common.select_unit(t)
        for n in (1, 2, 4):
            assert ours.trim_sigfig(t, n) == pytest.approx(common.trim_sigfig(t, n), rel=1e-6)
    assert [ours.unit_to_english(u) for u in ("ns", "us", "ms", "s")] == [
        common.unit_to_english(u) for u in ("ns", "us", "ms", "s")
    ]
