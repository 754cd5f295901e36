"""Tries batches up to 1,000."""
# caught by: test_largest_batch
# mistake: search_too_short
# %% largest_batch
def largest_batch(memory, layers, hidden, heads, vocab, sequence, stage=0, n=1, recomputation="none"):
    """The largest number of sequences of which a training step needs at most ``memory`` bytes on one rank."""
    states = sum(model_states(gpt_parameters(layers, hidden, vocab, sequence), "adam", "mixed", stage, n))

    def fits(batch):
        kept = kept_bytes(layers, batch, sequence, hidden, heads, recomputation)
        return states + kept + 4 * batch * sequence * (hidden + vocab) <= memory

    return max((batch for batch in range(1, 1_000) if fits(batch)), default=0)
