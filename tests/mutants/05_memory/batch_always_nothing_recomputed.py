"""Leaves recomputation out."""
# caught by: test_largest_batch
# mistake: argument_ignored
# %% largest_batch: changed
# -     one = kept_bytes(layers, 1, sequence, hidden, heads, recomputation) + 4 * sequence * hidden + 4 * sequence * vocab
# +     one = kept_bytes(layers, 1, sequence, hidden, heads) + 4 * sequence * hidden + 4 * sequence * vocab
