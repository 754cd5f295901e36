"""Puts its own shard back, and nobody else's."""


# caught by: test_Sharded
# mistake: not_exchanged
# %% Sharded: changed
# -         all_gather(self.whole)
