"""States of fp32."""
# caught by: test_largest_batch
# mistake: type_fixed
# %% largest_batch: changed
# -     states = sum(model_states(gpt_parameters(layers, hidden, vocab, sequence), "adam", "mixed", stage, n))
# +     states = sum(model_states(gpt_parameters(layers, hidden, vocab, sequence), "adam", "fp32", stage, n))
