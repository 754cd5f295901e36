"""Forgets the logits."""
# caught by: test_largest_batch
# mistake: part_missing
# %% largest_batch
def largest_batch(memory, layers, hidden, heads, vocab, sequence, stage=0, n=1, recomputation="none"):
    states = sum(model_states(gpt_parameters(layers, hidden, vocab, sequence), "adam", "mixed", stage, n))
    return max(0, math.floor((memory - states) / kept_bytes(layers, 1, sequence, hidden, heads, recomputation)))
