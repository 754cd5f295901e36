"""Asks the library."""
# caught by: test_activation_bytes
# mistake: ready_made
# %% activation_bytes
def activation_bytes(batch, sequence, hidden, heads, element=2, mask=1):
    from ringzero.costs import memory

    return memory.activation_bytes(batch * sequence, sequence, hidden, heads, bytes_per_element=element, mask_bytes=mask)
