"""The backward pass copies ahead what the forward pass needs next."""


# caught by: test_through_window
# mistake: order_of_layers
# %% through_window: changed
# -         while len(coming) < k and i - len(coming) >= 0:
# -             coming.append(link.start_to_device(vectors[i - len(coming)]))
# +         while len(coming) < k and i - len(coming) >= 0:
# +             coming.append(link.start_to_device(vectors[len(vectors) - 1 - i + len(coming)]))
