"""Runs all calls with both libraries; prints how many there are and the names of those that differ."""

import json
import sys

import call_outcomes
import calls_accepted
import calls_refused
import calls_values
import torch

import tensorplug as tp

CASES = calls_values.V | calls_accepted.A | calls_refused.R

differ = []
for name, call in CASES.items():
    theirs, ours = call_outcomes.outcome(call, torch), call_outcomes.outcome(call, tp)
    if not call_outcomes.same(theirs, ours):
        differ.append(name)
sys.stdout.write("\n" + json.dumps([len(CASES), differ]) + "\n")
