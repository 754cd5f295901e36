"""Waits for the other ranks after each bucket."""
# caught by: test_backward_pass
# mistake: no_overlap
# says: calls barrier while layers have still to compute
# %% backward_pass: changed
#               work = dist.all_reduce(flat, async_op=True)
# +             dist.barrier()
