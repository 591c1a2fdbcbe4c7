#!/usr/bin/env bash
# Install the project where a GPU is, with nothing from the network, test and measure it there, and tell what came out.
#
#     tools/gpu_report.sh                      in one go, of nine minutes at most; run again, it goes on
#     tools/gpu_report.sh --only smoke,tests   some of its parts
#     tools/gpu_report.sh --help
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PYTHONPATH=tools${PYTHONPATH:+:$PYTHONPATH} exec "${PYTHON:-python3}" -m gpu_report "$@"
