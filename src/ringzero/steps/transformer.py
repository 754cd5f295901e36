"""Transformers as the planner sees them: shapes, parameters, arithmetic. Some that were trained, with their sources."""

from collections.abc import Mapping
from typing import NamedTuple

from ringzero.costs.page import transformer as formulas


class Transformer(NamedTuple):
    """``layers`` of width ``hidden``; ``gated`` MLPs have three matrices.

    ``experts``  of each layer's MLP, of which a token uses ``active`` ones (the shared ones among them), each of width
                 ``ffn``; 1 for a dense model
    ``counted``  parameters as its authors state them, where attention is not the plain one; None to count
    """

    layers: int
    hidden: int
    heads: int
    ffn: int
    vocab: int
    sequence: int
    kv_heads: int | None = None
    gated: bool = False
    experts: int = 1
    active: int = 1
    counted: float | None = None

    @property
    def attention_parameters(self) -> int:
        kv = (self.kv_heads or self.heads) * (self.hidden // self.heads)
        return 2 * self.hidden * self.hidden + 2 * self.hidden * kv

    @property
    def expert_parameters(self) -> int:
        """Of one expert of one layer: its whole MLP, where there is one."""
        return (3 if self.gated else 2) * self.hidden * self.ffn

    @property
    def layer_parameters(self) -> float:
        """Of one layer. Biases and gains are left out: less than a thousandth."""
        if self.counted is not None:
            return (self.counted - 2 * self.vocab * self.hidden) / self.layers
        return self.attention_parameters + self.experts * self.expert_parameters

    @property
    def experts_parameters(self) -> float:
        """Of all experts of one layer; 0 for a dense model."""
        return 0.0 if self.experts == 1 else self.layer_parameters - self.attention_parameters

    @property
    def parameters(self) -> float:
        """Of the whole model, with the embedding and the head."""
        return self.layers * self.layer_parameters + 2 * self.vocab * self.hidden

    def layer_flops(self, micro_batch: float) -> float:
        """Forward, of one layer. Attention's scores count half, as causal kernels compute them."""
        tokens = micro_batch * self.sequence
        products = 2 * tokens * (self.attention_parameters + self.active * self.expert_parameters)
        return products + self.attention_flops(micro_batch)

    def attention_flops(self, micro_batch: float) -> float:
        """Forward, of the scores and values of one layer, half of them masked."""
        return formulas.attention_flops(1, self.sequence, self.hidden) / 2 * micro_batch

    def head_flops(self, micro_batch: float) -> float:
        return 2 * micro_batch * self.sequence * self.hidden * self.vocab

    def model_flops(self, batch: float, whole_attention: bool = False) -> float:
        """Forward and backward, that the model needs: what MFU counts. ``whole_attention``: what is masked, too."""
        masked = self.attention_flops(batch) * whole_attention
        return 3 * (self.layers * (self.layer_flops(batch) + masked) + self.head_flops(batch))


MODELS: Mapping[str, Transformer] = {
    "gpt2-xl": Transformer(48, 1600, 25, 6400, 50257, 1024),  # Radford et al. 2019
    "gpt3-13b": Transformer(40, 5120, 40, 20480, 50257, 2048),  # Brown et al. 2020; heads of 128, as 40 divide 5120
    "gpt3-175b": Transformer(96, 12288, 96, 49152, 51200, 2048),  # Brown et al. 2020, the vocabulary padded
    "llama3-8b": Transformer(32, 4096, 32, 14336, 128256, 8192, 8, True),  # Grattafiori et al. 2024, table 3
    "llama3-70b": Transformer(80, 8192, 64, 28672, 128256, 8192, 8, True),
    "llama3-405b": Transformer(126, 16384, 128, 53248, 128256, 8192, 8, True),
    # DeepSeek-AI 2024, section 4.2: 256 routed experts of width 2,048 and one shared, 8 + 1 for a token
    "deepseek-v3": Transformer(61, 7168, 128, 2048, 129280, 4096, None, True, 257, 9, 671e9),
}
