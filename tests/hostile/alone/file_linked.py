"""The notebook is a link to the instructor's, and a file beside it one to the gradebook."""

# verdict: invalid submission
# says: not a file
# %% hand in
path.unlink()
path.symlink_to(course.root / "source" / path.parent.name / path.name)
(path.parent / "data.txt").symlink_to(course.root / "gradebook.db")
