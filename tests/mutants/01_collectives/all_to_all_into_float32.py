"""What arrives is float32, whatever the tensor is."""
# caught by: test_all_to_all
# mistake: type_fixed
# %% all_to_all: changed
# -     arrived = [torch.empty_like(chunks[rank]) for _ in range(n)]
# +     arrived = [torch.empty(chunks[rank].numel()) for _ in range(n)]
# @@
# -         exchange(chunks[dst], dst, arrived[src], src)
# +         exchange(chunks[dst].float(), dst, arrived[src], src)
