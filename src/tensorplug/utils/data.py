"""Datasets, samplers and loaders: :mod:`tensorplug.data` under torch's name."""

from __future__ import annotations

from tensorplug.data import *
