"""A text as numbers: one per character."""

from pathlib import Path

import tensorplug as tp

POEM = Path(__file__).with_name("paradise_lost.txt")
HELD_OUT = 0.1  # the end of the text, for validation


class Text:
    """The characters of a text, numbered in their order in Unicode.

    Parameters
    ----------
    path : Path
        A file in UTF-8.
    """

    def __init__(self, path: Path = POEM) -> None:
        text = path.read_text(encoding="utf-8")
        self.alphabet = "".join(sorted(set(text)))
        self._numbers = {character: number for number, character in enumerate(self.alphabet)}
        tokens = self.encode(text)
        cut = int(len(tokens) * (1 - HELD_OUT))
        self.training, self.validation = tokens[:cut], tokens[cut:]

    def encode(self, text: str) -> tp.Tensor:
        unknown = sorted(set(text) - set(self.alphabet))
        if unknown:
            raise ValueError(f"characters that the text does not have: {unknown}")
        return tp.tensor([self._numbers[character] for character in text])

    def decode(self, tokens: tp.Tensor) -> str:
        return "".join(self.alphabet[number] for number in tokens.tolist())


def draw(tokens, count, length, generator):
    """Cut pieces from random places: tokens ``(count, length)``, and the next one for each."""
    if len(tokens) <= length:
        raise ValueError(f"a text of {len(tokens)} tokens has no piece of {length} and one more")
    places = tp.randint(0, len(tokens) - length, (count, 1), generator=generator)
    pieces = tokens[places + tp.arange(length + 1)]
    return pieces[:, :-1], pieces[:, 1:]
