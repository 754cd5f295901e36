"""Rank r's chunk lands one place too early: enumerate from 0 over a list that leaves the root out."""
# caught by: test_gather
# mistake: wrong_place
# says: rank 1's chunk in the place of chunk 0
# %% gather: changed
# -     for other, chunk in enumerate(chunks):
# -         if other != root:
# -             dist.recv(chunk, src=other)
# +     others = [other for other in range(len(chunks)) if other != root]
# +     for place, other in enumerate(others):
# +         dist.recv(chunks[place], src=other)
