"""Mended, and papered over: a barrier at every step, which nobody needs."""
# caught by: test_report
# mistake: symptom_for_cause
# %% report: changed
#       for step in range(len(losses)):
# +         dist.barrier()
