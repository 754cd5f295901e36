"""Divides the activations by the ranks as well, which ZeRO does not."""
# caught by: test_largest_batch
# mistake: stages_mixed_up
# %% largest_batch
def largest_batch(memory, layers, hidden, heads, vocab, sequence, stage=0, n=1, recomputation="none"):
    states = sum(model_states(gpt_parameters(layers, hidden, vocab, sequence), "adam", "mixed", stage, n))
    one = kept_bytes(layers, 1, sequence, hidden, heads, recomputation) + 4 * sequence * (hidden + vocab)
    return max(0, math.floor((memory - states) / (one / n)))
