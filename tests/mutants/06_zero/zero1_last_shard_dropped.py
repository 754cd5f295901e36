"""The last rank does not step its shard."""


# caught by: test_Zero1
# mistake: last_left_out
# says: on rank 3 after the first step the shard of layers.0
# %% Zero1: changed
# -             adamw(flat.shard, self.gradients[i], self.states[i])
# +             if dist.get_rank() < dist.get_world_size() - 1:
# +                 adamw(flat.shard, self.gradients[i], self.states[i])
