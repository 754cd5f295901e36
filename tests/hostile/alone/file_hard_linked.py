"""The notebook is a hard link to the instructor's, and a file beside it one to the gradebook."""
# verdict: invalid submission
# says: a link to the instructor's notebook
# %% hand in
path.unlink()
path.hardlink_to(course.root / "source" / path.parent.name / path.name)
(path.parent / "data.txt").hardlink_to(course.root / "gradebook.db")
