"""Every round is like the first."""
# caught by: test_count
# mistake: one_for_all
# %% count: changed
# -     return len(schedule.rounds), share
# +         break
# +     return len(schedule.rounds), share * len(schedule.rounds)
