"""AdamW's numbers belong to the class: a second model takes the first one's place."""


# caught by: test_Zero1
# mistake: one_for_all
# says: another model is trained in turn with this one
# %% Zero1: changed
# -         self.states = [{} for _ in self.flats]
# +         type(self).states = [{} for _ in self.flats]
