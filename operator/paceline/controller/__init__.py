"""The shell: what to read, what to write, and when. All decisions are in `plan`."""
