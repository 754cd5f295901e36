"""Memories are averaged over the ranks: what was saved is sent after all."""


# caught by: test_ErrorFeedback
# says: on rank 0 in step 2 the compressed vector is off by up to
# %% ErrorFeedback: changed
# -         self.memory = corrected - mine
# +         self.memory = corrected - mine
# +         dist.all_reduce(self.memory)
# +         self.memory /= dist.get_world_size()
