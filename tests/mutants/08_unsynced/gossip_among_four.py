"""Talks to the first four ranks at the most."""
# caught by: test_gossip
# mistake: some_ranks_only
# %% gossip: changed
# -     others = [s for s in range(n) if s != r]
# +     others = [s for s in range(min(n, 4)) if s != r and r < 4]
