"""In the first step every pass is sent, also inside no_sync."""


# caught by: test_Accumulating
# mistake: state_between_steps
# says: in step 1 rank 0 called all_reduce on 4 bytes inside no_sync
# %% Accumulating: changed
#               super().gradient_ready(parameter)
# +         elif self.first:
# +             dist.all_reduce(torch.zeros(1))
# +
# +     first = True
# +
# +     def finish(self):
# +         super().finish()
# +         self.first = False
