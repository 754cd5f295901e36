"""How long each all-reduce takes in place of its end."""
# caught by: test_all_reduces
# mistake: wrong_kind
# %% all_reduces: changed
# -             found.append((begin, link_free))
# +             found.append((begin, link_free - begin))
