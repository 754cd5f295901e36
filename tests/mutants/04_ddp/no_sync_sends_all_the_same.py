"""no_sync changes nothing: every pass sends its sum so far, and the result is right."""
# caught by: test_Accumulating
# mistake: too_much_sent
# %% Accumulating
class Accumulating(Overlapped):
    syncing = True

    @contextmanager
    def no_sync(self):
        yield
        self.finish()

    def gradient_ready(self, parameter):
        if not getattr(self, "_sent", None):
            self._sent = []
        super().gradient_ready(parameter)
