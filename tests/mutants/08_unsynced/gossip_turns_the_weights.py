"""Transposes the rows that it was given, and turns them back never."""


# caught by: test_gossip
# mistake: changes_its_input
# says: changed the weights it was given
# %% gossip: changed
#           work.wait()
# +     weights[r] = [float(each) for each in weights[r]]
# +     weights[r][r] = 1 - sum(each for s, each in enumerate(weights[r]) if s != r)
