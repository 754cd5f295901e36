"""After each averaging what the optimizer remembers is thrown away."""


# caught by: test_local_sgd
# mistake: state_between_steps
# says: before step 5
# %% local_sgd: changed
#           optimizer.step()
# +         if step % h == 0:
# +             for velocity in getattr(optimizer, 'velocities', ()):
# +                 velocity.zero_()
