"""The shell: what is read, what is written, and when. Everything that decides is in `plan`."""
