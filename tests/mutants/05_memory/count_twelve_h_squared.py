"""12h² a layer: the leading term."""
# caught by: test_gpt_parameters
# mistake: part_missing
# %% gpt_parameters
def gpt_parameters(layers, hidden, vocab, positions, tied=True):
    return layers * 12 * hidden**2 + (vocab + positions) * hidden + (0 if tied else vocab * hidden)
