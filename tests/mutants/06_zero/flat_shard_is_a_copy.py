"""The shard is a copy: what the optimizer steps is not what is gathered."""


# caught by: test_Flat
# mistake: copy_or_view
# %% Flat: changed
# -         self.shard = self.whole[self.owned]
# +         self.shard = self.whole[self.owned].clone()
