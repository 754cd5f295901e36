"""Right for GPT-2, whatever ``tied`` says."""
# caught by: test_gpt_parameters
# mistake: argument_ignored
# %% gpt_parameters
def gpt_parameters(layers, hidden, vocab, positions, tied=True):
    return layers * (12 * hidden**2 + 13 * hidden) + (vocab + positions) * hidden + 2 * hidden
