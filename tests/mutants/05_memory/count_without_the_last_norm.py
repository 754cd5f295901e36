"""Forgets the LayerNorm before the head."""
# caught by: test_gpt_parameters
# mistake: part_missing
# %% gpt_parameters
def gpt_parameters(layers, hidden, vocab, positions, tied=True):
    block = 12 * hidden**2 + 13 * hidden
    return layers * block + (vocab + positions) * hidden + (0 if tied else vocab * hidden)
