"""What `kubectl paceline` shows of a deployment in a cluster. Pure, except `find`, `command` and `screen`.

find       NAME → `deployment.Deployment`: manifest, status and runs, as records
progress   how far a run is, and how long it may still take
tree       Deployment → a tree for a terminal (rich draws it)
why        Deployment → a paragraph for each pool
table      the history
payload    Deployment → JSON
command    the options of all subcommands, and their errors in words
screen     colours on a terminal only, lines of any length elsewhere
"""
