"""Counts a head of its own."""
# caught by: test_largest_batch
# mistake: part_missing
# %% largest_batch: changed
# -     states = sum(model_states(gpt_parameters(layers, hidden, vocab, sequence), "adam", "mixed", stage, n))
# +     states = sum(model_states(gpt_parameters(layers, hidden, vocab, sequence, tied=False), "adam", "mixed", stage, n))
