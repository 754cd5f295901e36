"""The chunk is in its place; what is returned is a copy of it and not a view."""
# caught by: test_scatter
# mistake: copy_or_view
# says: is a copy
# %% scatter: changed
# -         return chunks[rank]
# +         return chunks[rank].clone()
# @@
# -             dist.send(chunk, dst=other)
# -     return chunks[rank]
# +             dist.send(chunk, dst=other)
# +     return chunks[rank].clone()
