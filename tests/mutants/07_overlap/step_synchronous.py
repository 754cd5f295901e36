"""Calls all_reduce without async_op: the next layer waits."""
# caught by: test_backward_pass
# mistake: no_overlap
# says: without async_op=True all_reduce waits itself, while layers have still to compute
# %% backward_pass: changed
# -             work = dist.all_reduce(flat, async_op=True)
# +             work = None
# +             dist.all_reduce(flat)
# @@
# -         work.wait()
