"""Run programs of one library in this process, and write a line of JSON for each.

``python process.py LIBRARY OUTPUT [NAME …]`` runs them on torch, ``python -m tensorplug.compat process.py …`` on
tensorplug. Without names it runs all.
"""

import importlib
import json
import random
import sys
import time
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


def main(library, output, *names):
    warnings.simplefilter("ignore")
    with Path(output).open("w", buffering=1) as lines:
        try:
            programs = importlib.import_module(f"programs.{library}").programs.functions
        except Exception:
            programs = {}
            lines.write(json.dumps({"program": "import", "error": traceback.format_exc()}) + "\n")
        import numpy as np
        import torch

        torch.set_num_threads(1)
        for name in names or programs:
            random.seed(0)
            np.random.seed(0)
            torch.manual_seed(0)
            started = time.perf_counter()
            try:
                import support

                said = {"result": support.short(programs[name]())}
            except Exception:
                said = {"error": traceback.format_exc()}
            said["seconds"] = round(time.perf_counter() - started, 2)
            lines.write(json.dumps({"program": name} | said) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
