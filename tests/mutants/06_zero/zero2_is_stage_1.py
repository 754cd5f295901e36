"""Reduces when the backward pass is over: stage 1 under another name."""


# caught by: test_Zero2
# mistake: stages_mixed_up
# says: holds 37,252 bytes of gradients; its shard is 9,288, all of them 37,236
# %% Zero2: changed
# -         for i, flat in enumerate(self.flats):
# -             for p in flat.parameters:
# -                 p.register_post_accumulate_grad_hook(lambda p, i=i: self.gradient_ready(i))
# @@
# -         """Nothing is left to do."""
# +         super().reduce()
