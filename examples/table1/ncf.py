"""NCF: the network NeuMF of "Neural collaborative filtering".

Xiangnan He, Lizi Liao, Hanwang Zhang, Liqiang Nie, Xia Hu and Tat-Seng Chua, 2017,
https://arxiv.org/abs/1708.05031, with the sizes that MLPerf trains on MovieLens-20M.
"""

from itertools import pairwise

import tensorplug as tp
from tensorplug import nn


class NeuMF(nn.Module):
    """A matrix factorisation beside a perceptron: 31,832,577 weights at its full size.

    Parameters
    ----------
    users, items : int
        How many there are.
    factors : int
        The size of the factorisation's embeddings.
    layers : sequence of int
        The sizes of the perceptron, beginning with its input: both of its embeddings together.
    """

    def __init__(
        self,
        users: int = 138493,
        items: int = 26744,
        factors: int = 64,
        layers: tuple[int, ...] = (256, 256, 128, 64),
    ) -> None:
        super().__init__()
        self.mf_user_embed = nn.Embedding(users, factors)
        self.mf_item_embed = nn.Embedding(items, factors)
        self.mlp_user_embed = nn.Embedding(users, layers[0] // 2)
        self.mlp_item_embed = nn.Embedding(items, layers[0] // 2)
        self.mlp = nn.ModuleList([nn.Linear(before, after) for before, after in pairwise(layers)])
        self.final = nn.Linear(factors + layers[-1], 1)
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.01)
            elif isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)

    def forward(self, users: tp.Tensor, items: tp.Tensor) -> tp.Tensor:
        """Return how much each user ``(N,)`` likes the item ``(N,)`` beside it, as logits ``(N,)``."""
        product = self.mf_user_embed(users) * self.mf_item_embed(items)
        x = tp.cat((self.mlp_user_embed(users), self.mlp_item_embed(items)), dim=1)
        for layer in self.mlp:
            x = layer(x).relu()
        return self.final(tp.cat((product, x), dim=1)).squeeze(1)
