"""Forgets the s x s matrices, as if attention were fused."""
# caught by: test_activation_bytes
# mistake: part_missing
# %% activation_bytes
def activation_bytes(batch, sequence, hidden, heads, element=2, mask=1):
    return batch * sequence * hidden * (16 * element + 2 * mask)
