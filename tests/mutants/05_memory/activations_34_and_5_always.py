"""The paper's constants, whatever the bytes of an element and of a mask."""
# caught by: test_activation_bytes
# mistake: argument_ignored
# %% activation_bytes
def activation_bytes(batch, sequence, hidden, heads, element=2, mask=1):
    return 34 * sequence * batch * hidden + 5 * heads * sequence**2 * batch
