"""A bucket waits for the beginning of the one before, not for its end."""
# caught by: test_all_reduces
# mistake: link_not_shared
# %% all_reduces: changed
# -             link_free = begin + alpha + beta * filling
# -             found.append((begin, link_free))
# +             link_free = begin
# +             found.append((begin, begin + alpha + beta * filling))
