"""Keeps the start of a round in fp32: parameters in fp64 lose half of their digits."""


# caught by: test_OuterStep
# mistake: type_fixed
# says: right to seven digits only
# %% OuterStep: changed
# -         self.starts = [p.detach().clone() for p in parameters]
# +         self.starts = [torch.empty(p.shape).copy_(p.detach()) for p in parameters]
