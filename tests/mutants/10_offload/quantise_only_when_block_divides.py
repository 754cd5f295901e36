"""Only for whole blocks."""


# caught by: test_quantise
# mistake: divisible_only
# %% quantise
def quantise(x, block):
    blocks = x.float().view(-1, block)
    scales = blocks.abs().amax(1) / 127
    return (blocks / scales.clamp(min=1e-30)[:, None]).round().to(torch.int8).view(-1), scales


def dequantise(integers, scales, block):
    return (integers.view(-1, block).float() * scales[:, None]).view(-1)
