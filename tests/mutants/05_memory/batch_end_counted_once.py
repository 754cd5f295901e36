"""The model's end does not grow with the batch."""
# caught by: test_largest_batch
# mistake: part_missing
# %% largest_batch: changed
# -     one = kept_bytes(layers, 1, sequence, hidden, heads, recomputation) + 4 * sequence * hidden + 4 * sequence * vocab
# +     states += 4 * sequence * hidden + 4 * sequence * vocab
# +     one = kept_bytes(layers, 1, sequence, hidden, heads, recomputation)
