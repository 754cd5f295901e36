"""Selective recomputation that drops the mask and keeps the softmax."""
# caught by: test_kept_bytes
# mistake: wrong_ones_dropped
# %% kept_bytes
def kept_bytes(layers, batch, sequence, hidden, heads, recomputation="none", element=2, mask=1):
    wide, square = batch * sequence * hidden, heads * sequence**2 * batch
    if recomputation == "full":
        return layers * wide * element
    squares = square * (element if recomputation == "selective" else 2 * element + mask)
    return layers * (wide * (16 * element + 2 * mask) + squares)
