"""The end of an inner no_sync ends the outer one."""
# caught by: test_Accumulating
# %% Accumulating
class Accumulating(Overlapped):
    syncing = True

    @contextmanager
    def no_sync(self):
        self.syncing = False
        try:
            yield
        finally:
            self.syncing = True

    def gradient_ready(self, parameter):
        if self.syncing:
            super().gradient_ready(parameter)
