"""Training runs whose plan and speed were published, to hold the planner's estimates against.

Speeds are TFLOP/s a GPU as each source counts them: Narayanan et al. count what full recomputation computes again. Two
constants of ``Cluster`` were chosen to suit them: ``reached`` for all, ``moved`` for the Megatron of 2021, whose
kernels did one operation each. ``note`` says what a source leaves open, or the planner out.
"""

from typing import NamedTuple

from ringzero.steps.plan import Cluster, Estimate, Plan, estimate
from ringzero.steps.transformer import MODELS, Transformer


class Run(NamedTuple):
    """``batch`` in sequences; ``counts_recomputation``: whether ``tflops`` does."""

    name: str
    model: Transformer
    cluster: Cluster
    batch: int
    plan: Plan
    tflops: float
    counts_recomputation: bool
    source: str
    note: str = ""

    def estimate(self) -> Estimate:
        return estimate(self.model, self.cluster, self.batch, self.plan)

    def predicted(self) -> float:
        """TFLOP/s a GPU, counted as ``tflops`` is."""
        times = 4 / 3 if self.counts_recomputation else 1
        flops = self.model.model_flops(self.batch, whole_attention=self.counts_recomputation) * times
        return flops / self.estimate().seconds / self.cluster.gpus / 1e12


_MEGATRON = "Narayanan et al. 2021, table 1"


def _megatron(name, layers, hidden, heads, tensor, pipeline, gpus, batch, micro_batch, tflops):
    model = Transformer(layers, hidden, heads, 4 * hidden, 51200, 2048)
    plan = Plan(gpus // tensor // pipeline, tensor, pipeline, 0, micro_batch=micro_batch, recomputation="full")
    return Run(
        name, model, Cluster("A100", gpus // 8, infiniband="HDR", moved=1000), batch, plan, tflops, True, _MEGATRON
    )


def _llama(gpus, batch, tflops):
    plan = Plan(gpus // 128, 8, 16, 1, virtual=4)
    cluster = Cluster("H100", gpus // 8)
    source = "Grattafiori et al. 2024, table 4"
    return Run(
        f"Llama 3 405B, {gpus:,} GPUs", MODELS["llama3-405b"], cluster, batch, plan, tflops, False, source, PIECES
    )


def _deepseek():
    """180,000 GPU-hours for 10^12 tokens, in TFLOP/s."""
    model, source = MODELS["deepseek-v3"], "DeepSeek-AI 2024, section 1"
    tflops = model.model_flops(1) / model.sequence * 1e12 / (180e3 * 3600) / 1e12
    plan = Plan(128, 1, 16, 1)
    return Run("DeepSeek-V3, 2,048 GPUs", model, Cluster("H800", 256), 15360, plan, tflops, False, source, EXPERTS)


PIECES = "pieces of the model a rank: not stated, 4 assumed"
EXPERTS = "products in 8 bits, experts' messages to at most 4 nodes and hidden behind another micro-batch (DualPipe)"
RUNS = (
    _megatron("GPT of 1.7B", 24, 2304, 24, 1, 1, 32, 512, 16, 137),
    _megatron("GPT of 3.6B", 30, 3072, 32, 2, 1, 64, 512, 8, 138),
    _megatron("GPT of 7.5B", 36, 4096, 32, 4, 1, 128, 512, 8, 142),
    _megatron("GPT of 18.4B", 40, 6144, 48, 8, 1, 256, 1024, 4, 135),
    _megatron("GPT of 39.1B", 48, 8192, 64, 8, 2, 512, 1536, 4, 138),
    _megatron("GPT of 76.1B", 60, 10240, 80, 8, 4, 1024, 1792, 2, 140),
    _megatron("GPT of 145.6B", 80, 12288, 96, 8, 8, 1536, 2304, 2, 148),
    _megatron("GPT of 310.1B", 96, 16384, 128, 8, 16, 1920, 2160, 1, 155),
    _megatron("GPT of 529.6B", 105, 20480, 128, 8, 35, 2520, 2520, 1, 163),
    _megatron("GPT of 1008B", 128, 25600, 160, 8, 64, 3072, 3072, 1, 163),
    _llama(8192, 2048, 430),
    _llama(16384, 2048, 400),
    _deepseek(),
)
