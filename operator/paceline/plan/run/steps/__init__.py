"""One module per step of a run, named after it. A step imports no other step (`make lint`): shared code is in
`paceline.plan.run`."""
