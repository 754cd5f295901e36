"""Sums a view of the losses, and puts back a rounded copy."""
# caught by: test_report
# mistake: changes_its_input
# %% report: changed
# -         mean = mean_over_ranks(losses[step])
# +         own = losses[step].item()
# +         dist.all_reduce(losses[step])
# +         mean = losses[step] / dist.get_world_size()
# +         losses[step] = own if step == len(losses) - 1 else mean
