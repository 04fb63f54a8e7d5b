{{- /* Of objects in the release's namespace. The label app.kubernetes.io/name stays: releases find each other by it. */}}
{{- define "paceline.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if .Values.nameOverride -}}
{{ .Release.Name }}-{{ .Values.nameOverride }}
{{- else -}}
{{ .Release.Name }}
{{- end -}}
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
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
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
