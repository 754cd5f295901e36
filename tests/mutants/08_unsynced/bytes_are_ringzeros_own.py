"""ringzero's own formula."""


# caught by: test_bytes_a_step
# mistake: ready_made
# says: raised ImportError: ringzero.costs is not to be used here: write it yourself
# %% bytes_a_step: changed
# -     if method == "gossip":
# +     if method == "local SGD":
# +         from ringzero.costs import local
# +
# +         return local.local_sgd_bytes(rows * columns, n, h)
# +     if method == "gossip":
