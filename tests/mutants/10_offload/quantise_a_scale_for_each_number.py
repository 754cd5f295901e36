"""Blocks of one number: exact, and five bytes each."""


# caught by: test_quantise
# mistake: too_much_sent
# says: the scales are torch.float32 of shape (1024,), expected torch.float32 of shape (4,)
# %% quantise
def quantise(x, block):
    scales = x.float().abs() / 127
    return (x.float().sign() * 127).to(torch.int8), scales


def dequantise(integers, scales, block):
    return integers.float() * scales
