"""One module for each step of a run, named as its step. A step imports no other step (`make lint`): what two of them
share is a module of `paceline.plan.run`."""
