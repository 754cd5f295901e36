"""What arrives is put where the receiver's chunk would be: dst for src."""


# caught by: test_all_to_all
# mistake: wrong_place
# says: what is returned is wrong
# %% all_to_all: changed
# -         exchange(chunks[dst], dst, arrived[src], src)
# +         exchange(chunks[dst], dst, arrived[dst], src)
