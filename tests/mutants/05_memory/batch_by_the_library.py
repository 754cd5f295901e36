"""Asks the library."""
# caught by: test_largest_batch
# mistake: ready_made
# %% largest_batch
def largest_batch(memory, layers, hidden, heads, vocab, sequence, stage=0, n=1, recomputation="none"):
    from ringzero.costs import memory as formulas
    from ringzero.costs import transformer

    states = formulas.model_state_bytes(transformer.gpt_params(layers, hidden, vocab, sequence), stage, n)
    one = formulas.activation_bytes(sequence, sequence, hidden, heads, layers, recomputation=recomputation)
    return max(0, math.floor((memory - states) / (one + formulas.output_activation_bytes(sequence, hidden, vocab))))
