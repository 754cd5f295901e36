"""Full recomputation that keeps nothing: from what would it begin?"""
# caught by: test_kept_bytes
# mistake: part_missing
# %% kept_bytes
def kept_bytes(layers, batch, sequence, hidden, heads, recomputation="none", element=2, mask=1):
    if recomputation == "full":
        return 0
    wide, square = batch * sequence * hidden, heads * sequence**2 * batch
    squares = 0 if recomputation == "selective" else square * (2 * element + mask)
    return layers * (wide * (16 * element + 2 * mask) + squares)
