"""Counts elements and multiplies masks by 2 as well."""
# caught by: test_activation_bytes
# mistake: units
# %% activation_bytes
def activation_bytes(batch, sequence, hidden, heads, element=2, mask=1):
    return element * (18 * sequence * batch * hidden + 3 * heads * sequence**2 * batch)
