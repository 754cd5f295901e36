"""Counts transfers that are added."""
# caught by: test_count
# mistake: one_of_a_kind
# %% count: changed
#           for transfer in transfers:
# +             if schedule.collective == 'all_reduce' and not transfer.reduce:
# +                 continue
#               chunks["out of", transfer.src] += 1
#               chunks["into", transfer.dst] += 1
# -         share += max(chunks.values()) / schedule.chunks
# +         share += max(chunks.values(), default=0) / schedule.chunks
#       return len(schedule.rounds), share
