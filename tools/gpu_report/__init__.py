"""A report from a machine with a GPU: what is there, what passes, how fast it is.

It runs in slices, since such a machine may be lent for minutes only: each run goes on where the last one
stopped, down to the single test. All that is known lies in one folder:

``results.jsonl``
    A line per step: its name, whether it passed, seconds, the last lines it printed.
``tests.jsonl``, ``conformance.jsonl``
    A line per test: its id, its outcome, the first line of its error.
``*.log``
    What each step printed.
``bench/``
    The figures of the benchmarks.
``report.md``
    The summary of a page, the worst first.
"""
