"""Keeps the whole gradients of all layers as lists."""
# caught by: test_Zero2
# mistake: kept_in_memory
# %% Zero2: changed
#               for p in flat.parameters:
# +                 p.register_post_accumulate_grad_hook(lambda p: self.keep(p))
#                   p.register_post_accumulate_grad_hook(lambda p, i=i: self.gradient_ready(i))
# +
# +     def keep(self, p):
# +         self.whole = {**getattr(self, "whole", {}), p: p.grad.tolist()}
