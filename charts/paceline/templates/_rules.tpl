{{- /* The operator's rights. No secrets, no exec, no nodes: what the operator must know of those reaches it through pods. */}}
{{- define "paceline.rules" -}}
- {apiGroups: [paceline.dev], resources: [speculativedeployments], verbs: [get, list, watch]}
- {apiGroups: [paceline.dev], resources: [benchmarkruns], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [paceline.dev], resources: [benchmarkrounds], verbs: [get, list, create, patch]}
- {apiGroups: [paceline.dev], resources: [benchmarkprofiles], verbs: [list, watch]}
- {apiGroups: [paceline.dev], resources: [speculativedeployments/status, benchmarkruns/status], verbs: [patch]}
- {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [apps], resources: [controllerrevisions], verbs: [list, watch, create, patch, delete]}
- {apiGroups: [leaderworkerset.x-k8s.io], resources: [leaderworkersets], verbs: [get, list, watch, create, patch, delete]}
# Where pods claim devices, which Kubernetes has from 1.34 on.
- {apiGroups: [resource.k8s.io], resources: [resourceclaimtemplates], verbs: [list, watch, create, patch, delete]}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [""], resources: [services], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [get, list, watch, create, patch, delete]}
# Where the cluster has these kinds, and the spec asks for them.
- {apiGroups: [gateway.networking.k8s.io], resources: [httproutes], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [inference.networking.k8s.io], resources: [inferencepools], verbs: [get, list, watch, create, patch, delete]}
# Whether an autoscaler decides on the number of a pool's servers.
- {apiGroups: [autoscaling], resources: [horizontalpodautoscalers], verbs: [list, watch]}
- {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [get, list, watch, create, patch]}
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
# A round's result is in the log of its client. RBAC cannot limit this to pods that we made.
- {apiGroups: [""], resources: [pods/log], verbs: [get]}
# Whether prompts are there, before a round takes accelerators to find it out. Pods that we make may read them anyway.
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
- {apiGroups: [""], resources: [events], verbs: [get, list, create, update]}
{{- end }}
