"""ringzero's own under another name."""


# caught by: test_quantise
# mistake: ready_made
# says: ringzero's own is not to be used here
# %% quantise
def quantise(x, block):
    from ringzero.zero.quantised import Blocks

    wire, scales = Blocks(8, block).encode(x), 4 * -(-x.numel() // block)
    return wire[scales:].view(torch.int8), wire[:scales].clone().view(torch.float32)


def dequantise(integers, scales, block):
    from ringzero.zero.quantised import Blocks

    return Blocks(8, block).decode(torch.cat([scales.view(torch.uint8), integers.view(torch.uint8)]), integers.numel())
