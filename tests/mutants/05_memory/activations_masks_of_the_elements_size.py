"""Right on a CPU only: a mask as large as what it masks."""
# caught by: test_activation_bytes
# mistake: units
# %% activation_bytes
def activation_bytes(batch, sequence, hidden, heads, element=2, mask=1):
    return 18 * element * batch * sequence * hidden + 3 * element * heads * sequence**2 * batch
