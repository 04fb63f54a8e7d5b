"""A simulated cluster, for `paceline plan` and for the tests of the planners.

`cluster` holds objects like an API server; `controllers.step` creates and replaces pods, has them placed (`scheduler`)
and started (`kubelet`) and reports progress in the status of their owners; `answers` has the reports of finished
prefetches and rounds; `reconciler` gives the planners their snapshots and carries out their actions.

Nothing ends by itself: the caller decides when servers get ready and Jobs end (`kubelet.mark_ready`, `kubelet.end`).
`plan.forecast` lets everything succeed; tests add faults around it.
"""
