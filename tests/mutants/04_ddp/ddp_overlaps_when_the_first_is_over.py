"""In its first step nothing leaves before finish(), as nobody knows yet what is used."""


# caught by: test_DDP
# mistake: no_overlap
# says: step 1, bucket 1 of 2: full when layer 2 was done, but it left after the backward pass
# %% DDP: changed
# -             self.launch_full_ones()
# +             if self.warm:
# +                 self.launch_full_ones()
# +
# +     warm = False
# @@
# -         self.launched = 0
# +         self.launched, self.warm = 0, True
