"""The states' last part of a byte is left out."""
# caught by: test_largest_batch
# mistake: rounded_wrongly
# %% largest_batch: changed
# -     states = sum(model_states(gpt_parameters(layers, hidden, vocab, sequence), "adam", "mixed", stage, n))
# +     states = int(sum(model_states(gpt_parameters(layers, hidden, vocab, sequence), "adam", "mixed", stage, n)))
