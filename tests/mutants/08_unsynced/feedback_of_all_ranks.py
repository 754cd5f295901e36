"""Memories are averaged over the ranks: what was saved is sent after all."""


# caught by: test_ErrorFeedback
# mistake: too_much_sent
# says: it is the mean of all ranks' memories
# %% ErrorFeedback: changed
# -         self.memory = corrected - mine
# +         self.memory = corrected - mine
# +         dist.all_reduce(self.memory)
# +         self.memory /= dist.get_world_size()
