"""A parameter that this rank did not use ends without a gradient here, and the ranks drift apart."""
# caught by: test_DDP
# mistake: without_gradient
# %% DDP: changed
# -     """As ``Accumulating``; parameters may go without a gradient on some ranks, or on all."""
# -
# -     launched = 0  # buckets on their way
# +     launched = 0
# @@
#       def finish(self):
# +         unused = [p for b in self.buckets for p in b.missing]
# @@
#           self.launched = 0
# +         for parameter in unused:
# +             parameter.grad = None
