"""ringzero's formula under another name."""


# caught by: test_tier_bytes
# mistake: ready_made
# says: ringzero's own is not to be used here
# %% tier_bytes
def tier_bytes(params, n, layer, states="device", parameters="device", precision="mixed"):
    from ringzero.costs.offload import tier_bytes as theirs

    each = (2, 2, 12) if precision == "mixed" else (4, 4, 8)
    return theirs(params / n, states, parameters, each, resident=layer)
