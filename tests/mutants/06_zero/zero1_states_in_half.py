"""Keeps the second moment in 16 bits, with rounding."""
# caught by: test_Zero1
# mistake: wrong_kind
# %% Zero1: changed
#               adamw(flat.shard, self.gradients[i], self.states[i])
# +             self.states[i]["exp_avg"] = self.states[i]["exp_avg"].bfloat16().float()
