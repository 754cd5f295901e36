"""Keeps what it gathered the first time, and never gathers again."""


# caught by: test_Sharded
# mistake: state_between_steps
# %% Sharded: changed
# -         self.whole[self.owned] = self.shard
# -         all_gather(self.whole)
# +         if not hasattr(self, "kept"):
# +             self.whole[self.owned] = self.shard
# +             self.kept = all_gather(self.whole).clone()
# +         self.whole.copy_(self.kept)
