"""Keeps AdamW's numbers in NumPy arrays, which no count of tensors sees."""
# caught by: test_Zero1
# mistake: kept_in_memory
# says: is a numpy.ndarray: keep tensors, whose memory can be counted
# %% Zero1: changed
# -             adamw(flat.shard, self.gradients[i], self.states[i])
# +             state = {key: torch.from_numpy(x) if hasattr(x, "nbytes") else x for key, x in self.states[i].items()}
# +             adamw(flat.shard, self.gradients[i], state)
# +             self.states[i] = {key: x.numpy() if hasattr(x, "numpy") else x for key, x in state.items()}
