"""Selective recomputation takes the other masks along."""
# caught by: test_kept_bytes
# %% kept_bytes
def kept_bytes(layers, batch, sequence, hidden, heads, recomputation="none", element=2, mask=1):
    wide, square = batch * sequence * hidden, heads * sequence**2 * batch
    of_a_layer = {
        "none": wide * (16 * element + 2 * mask) + square * (2 * element + mask),
        "selective": wide * 16 * element,
        "full": wide * element,
    }
    return layers * of_a_layer[recomputation]
