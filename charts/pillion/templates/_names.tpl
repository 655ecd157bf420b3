{{/*
Names do not follow the release: one installation is all a cluster can have.
*/}}

{{/* The service account that calls itself by a role: "webhook" or "controller". */}}
{{- define "pillion.account" -}}
{{- if eq .layout "OnePod" -}}pillion-manager{{- else -}}pillion-{{ .role }}{{- end -}}
{{- end -}}

{{/* The name by which the API server knows that account. */}}
{{- define "pillion.user" -}}
system:serviceaccount:{{ .namespace }}:{{ include "pillion.account" . }}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "pillion.labels" -}}
app.kubernetes.io/name: pillion
app.kubernetes.io/part-of: pillion
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Labels by which the pods of a Deployment are found. */}}
{{- define "pillion.selector" -}}
app.kubernetes.io/name: pillion
app.kubernetes.io/component: {{ . }}
{{- end -}}

{{/* Which Deployments there are: their names after "pillion-", each with its roles. */}}
{{- define "pillion.deployments" -}}
{{- if eq .Values.layout "OnePod" -}}
manager: [webhook, controller]
{{- else -}}
controller: [controller]
webhook: [webhook]
{{- end -}}
{{- end -}}

{{/* The Deployment of which the API server calls the pods. */}}
{{- define "pillion.serving" -}}
{{- ternary "manager" "webhook" (eq .Values.layout "OnePod") -}}
{{- end -}}

{{- define "pillion.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{/* Gives the account of a role the ClusterRole and the Role of the same name. */}}
{{- define "pillion.bindings" -}}
{{- $account := include "pillion.account" (dict "layout" .root.Values.layout "role" .role) -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: pillion-{{ .role }}
  labels:
    {{- include "pillion.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: pillion-{{ .role }}
subjects:
  - kind: ServiceAccount
    name: {{ $account }}
    namespace: {{ .root.Release.Namespace }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: pillion-{{ .role }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "pillion.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: pillion-{{ .role }}
subjects:
  - kind: ServiceAccount
    name: {{ $account }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}
