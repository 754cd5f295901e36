"""Reduces early, but puts the gradients back where they were until the end."""


# caught by: test_Zero2
# mistake: stages_mixed_up
# says: bytes of gradients; its shard is 9,288, all of them 37,236
# %% Zero2: changed
#               return
# +         whole = [p.grad for p in flat.parameters]
# @@
#           shard = mean_gradient(flat)
# +         self.kept = {**getattr(self, "kept", {}), i: whole}
# @@
# -         """Nothing is left to do."""
# +         self.kept = {}
