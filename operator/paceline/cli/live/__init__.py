"""What `kubectl paceline` shows of a deployment in a cluster. Pure, but for `find`, `command` and `screen`.

find       NAME → `deployment.Deployment`: manifest, status and runs, as records
progress   how far a run is, and how long it may still take
tree       that → a tree for a terminal (rich draws it)
why        that → a paragraph for each pool
table      the history
payload    that → JSON
command    the options of all subcommands, and their errors in words
screen     colours on a terminal only, lines of any length elsewhere
"""
