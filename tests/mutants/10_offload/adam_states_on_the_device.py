"""The masters are on the host; AdamW's two numbers are kept on the device between steps."""


# caught by: test_HostAdam
# mistake: kept_in_memory
# says: after step 1 the device holds 11,280 bytes; the parameters are 2,256
# %% HostAdam: changed
# -         self.optimizer.step()
# +         for state in getattr(self, "kept", []):
# +             for name in ("exp_avg", "exp_avg_sq"):
# +                 state[name] = self.link.to_host(state[name])
# +         self.optimizer.step()
# +         self.kept = list(self.optimizer.state.values())
# +         for state in self.kept:
# +             for name in ("exp_avg", "exp_avg_sq"):
# +                 state[name] = self.link.to_device(state[name])
