"""One input for the whole model, not for each layer."""
# caught by: test_kept_bytes
# mistake: one_for_all
# %% kept_bytes
def kept_bytes(layers, batch, sequence, hidden, heads, recomputation="none", element=2, mask=1):
    wide, square = batch * sequence * hidden, heads * sequence**2 * batch
    if recomputation == "full":
        return wide * element
    squares = 0 if recomputation == "selective" else square * (2 * element + mask)
    return layers * (wide * (16 * element + 2 * mask) + squares)
