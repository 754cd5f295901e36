"""A bias in the head of its own, where it has none."""
# caught by: test_gpt_parameters
# mistake: counted_twice
# %% gpt_parameters
def gpt_parameters(layers, hidden, vocab, positions, tied=True):
    head = 0 if tied else vocab * hidden + vocab
    return layers * (12 * hidden**2 + 13 * hidden) + (vocab + positions) * hidden + 2 * hidden + head
