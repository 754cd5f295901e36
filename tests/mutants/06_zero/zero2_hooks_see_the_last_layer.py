"""Hooks made in a loop, which all see the last value of its variable."""
# caught by: test_Zero2
# mistake: late_binding
# says: nothing reduced that layer. Hooks made in a loop all see its last i, unless they keep it: lambda p, i=i
# %% Zero2: changed
# -                 p.register_post_accumulate_grad_hook(lambda p, i=i: self.gradient_ready(i))
# +                 p.register_post_accumulate_grad_hook(lambda p: self.gradient_ready(i))
