"""Each tensor gets other memory with rank 0's numbers, so views of it are left behind."""
# caught by: test_start_alike
# mistake: copy_or_view
# says: has other memory now
# %% start_alike: changed
# -         dist.broadcast(tensor.detach(), src=0)
# +         theirs = tensor.detach().clone()
# +         dist.broadcast(theirs, src=0)
# +         tensor.data = theirs
