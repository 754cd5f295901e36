"""The last rank does not step its shard."""


# caught by: test_Zero3
# mistake: last_left_out
# %% Zero3: changed
# -             adamw(flat.shard, self.gradients[i], self.states[i])
# +             if dist.get_rank() < dist.get_world_size() - 1:
# +                 adamw(flat.shard, self.gradients[i], self.states[i])
