"""A thread sends, and calls all_reduce without async_op."""
# caught by: test_backward_pass
# mistake: no_overlap
# %% backward_pass: changed
# -     filling, travelling = [], []
# +     from concurrent.futures import ThreadPoolExecutor
# +
# +     filling, travelling, pool = [], [], ThreadPoolExecutor(1)
# @@
# -             work = dist.all_reduce(flat, async_op=True)
# +             work = pool.submit(dist.all_reduce, flat)
# @@
# -         work.wait()
# +         work.result()
