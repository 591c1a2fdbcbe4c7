"""The tokenizer of BERT: words in lower case, and the longest pieces of them that the vocabulary has."""

import unicodedata
from pathlib import Path

LONGEST_WORD = 100  # characters; a longer one is unknown
MOST_TOKENS = 256  # that the model was trained with, the two around a sentence included
CHINESE = (  # blocks of ideographs: each of them is a word
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """Cuts sentences into numbered pieces of words (Wu et al., 2016; Devlin et al., 2018).

    Parameters
    ----------
    vocabulary : Path
        A file with one piece per line; those that go on with a word begin with "##".
    """

    def __init__(self, vocabulary: Path) -> None:
        pieces = vocabulary.read_text(encoding="utf-8").splitlines()
        self.numbers = {piece: number for number, piece in enumerate(pieces)}

    def encode(self, sentence: str) -> list[int]:
        """Return the numbers of a sentence, between those of [CLS] and [SEP]."""
        pieces = [piece for word in split_words(sentence) for piece in self.cut(word)]
        pieces = ["[CLS]", *pieces[: MOST_TOKENS - 2], "[SEP]"]
        return [self.numbers[piece] for piece in pieces]

    def cut(self, word: str) -> list[str]:
        """Return the pieces of a word, each the longest that fits."""
        if len(word) > LONGEST_WORD:
            return ["[UNK]"]
        pieces: list[str] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if prefix + word[start:e] in self.numbers), None)
            if end is None:
                return ["[UNK]"]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces


def split_words(sentence: str) -> list[str]:
    """Return words and signs, in lower case and without accents."""
    cleaned = "".join(_clean(character) for character in sentence)
    plain = unicodedata.normalize("NFD", cleaned)
    plain = "".join(c for c in plain if unicodedata.category(c) != "Mn").lower()
    return "".join(f" {c} " if _is_sign(c) else c for c in plain).split()


def _clean(character: str) -> str:
    if character in "\t\n\r" or unicodedata.category(character) == "Zs":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co"):
        return ""
    if any(first <= ord(character) <= last for first, last in CHINESE):
        return f" {character} "
    return character


def _is_sign(character: str) -> bool:
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")
