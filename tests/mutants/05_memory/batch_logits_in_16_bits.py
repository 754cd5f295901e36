"""Logits of 2 bytes, where the loss wants fp32."""
# caught by: test_largest_batch
# mistake: one_of_a_kind
# %% largest_batch
def largest_batch(memory, layers, hidden, heads, vocab, sequence, stage=0, n=1, recomputation="none"):
    states = sum(model_states(gpt_parameters(layers, hidden, vocab, sequence), "adam", "mixed", stage, n))
    one = kept_bytes(layers, 1, sequence, hidden, heads, recomputation) + sequence * (4 * hidden + 2 * vocab)
    return max(0, math.floor((memory - states) / one))
