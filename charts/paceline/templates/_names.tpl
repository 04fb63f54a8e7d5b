{{- /* Of objects in the release's namespace, a Service among them, whose name may be less than a release's. The label
app.kubernetes.io/name stays: releases find each other by it. */}}
{{- define "paceline.fullname" -}}
{{- $short := printf "%s-%s" .Release.Name .Values.nameOverride | trimSuffix "-" -}}
{{- $name := .Values.fullnameOverride | default $short -}}
{{- if not (regexMatch "^[a-z][-a-z0-9]{0,62}$" $name) -}}
{{- fail (printf "a Service cannot be named %s (%d characters): it has at most 63, a-z, 0-9 and -, a letter first; name another one in fullnameOverride" $name (len $name)) -}}
{{- end -}}
{{ $name }}
{{- end }}
{{- /* Of objects of the cluster. One release at most works in all namespaces; of those that work in some, there may be
several of one name. */}}
{{- define "paceline.clusterName" -}}
{{ if .Values.namespaces }}{{ .Release.Namespace }}-{{ end }}{{ include "paceline.fullname" . }}
{{- end }}
{{- define "paceline.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "paceline.fullname" .) }}
{{- end }}
{{- /* The value is part of the name: Kubernetes lets nobody change the value of a class. `of`: server or benchmark. */}}
{{- define "paceline.priorityClass" -}}
{{ include "paceline.clusterName" .top }}-{{ .of }}-{{ get .top.Values.priorityClasses .of | int | toString | replace "-" "minus-" }}
{{- end }}
{{- define "paceline.labels" -}}
app.kubernetes.io/name: paceline
app.kubernetes.io/instance: {{ .Release.Name }}
{{- /* A version of one's own packaging may have a +, which a label has not. */}}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end }}
{{- /* Of the release, and the values' own beside them: ours win, and none stands there twice. */}}
{{- define "paceline.labelsAnd" -}}
{{- $own := last . | default dict }}
{{- merge (include "paceline.labels" (first .) | fromYaml) $own | toYaml }}
{{- end }}
{{- define "paceline.selector" -}}
app.kubernetes.io/name: paceline
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "paceline.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}
