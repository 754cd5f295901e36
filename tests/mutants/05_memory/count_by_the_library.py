"""Asks the library."""
# caught by: test_gpt_parameters
# mistake: ready_made
# %% gpt_parameters
def gpt_parameters(layers, hidden, vocab, positions, tied=True):
    from ringzero.costs import transformer

    return transformer.gpt_params(layers, hidden, vocab, positions, tied_embeddings=tied)
