{{- /* How much a free-form value weighs, as CEL: the characters of its keys and strings, 8 for any other scalar, 1 an
entry; and 100000 for what is deeper than `depth` or has more than 512 entries. Nested by hand: CEL has no recursion. */}}
{{- define "paceline.weight" -}}
{{- $v := .of -}}
{{- if eq .depth 0 -}}
(type({{ $v }}) == map || type({{ $v }}) == list ? 100000 : type({{ $v }}) == string ? {{ $v }}.size() : 8)
{{- else -}}
{{- $e := printf "e%d" .depth -}}{{- $w := printf "w%d" .depth -}}
(type({{ $v }}) == string ? {{ $v }}.size() : type({{ $v }}) == map || type({{ $v }}) == list ? ({{ $v }}.size() > 512 ? 100000 : {{ $v }}.map({{ $e }}, 1 + (type({{ $v }}) == map ? {{ $e }}.size() : 0) + [type({{ $v }}) == list ? {{ $e }} : {{ $v }}[{{ $e }}]].map({{ $w }}, {{ include "paceline.weight" (dict "of" $w "depth" (sub .depth 1 | int)) }}).sum()).sum()) : 8)
{{- end -}}
{{- end }}

{{- /* CEL: an argument is neither the engines' flag for remote code nor short for it, which they take, nor a file that
may hold it. vLLM has another flag that begins so. */}}
{{- define "paceline.trustsNothing" -}}
[a.replace('_', '-').split('=')[0]].all(f, f.startsWith('--trust-request') || !(f.startsWith('--trust') || (f.size() > 3 && '--trust-remote-code'.startsWith(f)) || (f.size() > 4 && '--config'.startsWith(f))))
{{- end }}
{{- /* CEL: the model `of`, if it is an image, is one of `prefixes`. */}}
{{- define "paceline.pulls" -}}
(!has({{ .of }}) || !has({{ .of }}.source) || !{{ .of }}.source.startsWith('oci://') || {{ toJson .prefixes }}.exists(i, {{ .of }}.source.startsWith('oci://' + i)))
{{- end }}
{{- /* What the pods that the operator makes have, by its environment. */}}
{{- define "paceline.pods" -}}
{{- $networks := list }}
{{- if .Values.networkPolicies.servers }}{{ $networks = append $networks "servers" }}{{ end }}
{{- if .Values.networkPolicies.rounds }}{{ $networks = append $networks "rounds" }}{{ end }}
{{- $resources := dict "server" .Values.servers.resources "client" .Values.client.resources "fetch" .Values.fetch.resources }}
{{- $container := .Values.servers.securityContext | default dict }}
{{- $pod := .Values.servers.podSecurityContext | default dict }}
{{- if eq .Values.servers.podSecurity "restricted" }}
{{- $container = merge (deepCopy $container) (dict "allowPrivilegeEscalation" false "capabilities" (dict "drop" (list "ALL"))) }}
{{- $pod = merge (deepCopy $pod) (dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault")) }}
{{- end }}
{{- $said := dict "imagePullSecrets" .Values.imagePullSecrets "resources" $resources "securityContext" $container "podSecurityContext" $pod "networkPolicies" $networks "disruptionBudgets" .Values.disruptionBudgets }}
{{- with .Values.fetch.env }}{{ $_ := set $said "fetchEnv" . }}{{ end }}
{{- if .Values.caBundle.configMap }}{{ $_ := set $said "caBundle" .Values.caBundle }}{{ end }}
{{- toJson $said }}
{{- end }}
