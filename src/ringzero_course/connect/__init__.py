"""Other services: files from Canvas and Moodle, graders for Gradescope and GitHub, files for Dolos and JPlag."""
