{{/*
Names do not follow the release: one installation is all a cluster can have.
*/}}

{{/* The service account that calls itself by a role: "webhook", "controller", "agent-controller" or "rightsizer". */}}
{{- define "pillion.account" -}}
{{- if and (eq .layout "OnePod") (ne .role "rightsizer") -}}pillion-manager{{- else -}}pillion-{{ .role }}{{- end -}}
{{- end -}}

{{/* The name by which the API server knows that account. */}}
{{- define "pillion.user" -}}
system:serviceaccount:{{ .namespace }}:{{ include "pillion.account" . }}
{{- end -}}

{{/*
Everything of pods that can be written, except the status. Updates of the status are the most frequent writes of a cluster, and the API
server converts the pod for each policy that matches; pillion-status-marks keeps accounts of Pillion from writing the status of an injected pod.
*/}}
{{- define "pillion.pods-without-status" -}}
pods, pods/attach, pods/binding, pods/ephemeralcontainers, pods/eviction, pods/exec, pods/portforward, pods/proxy, pods/resize, bindings
{{- end -}}

{{/* Whether agents in pods are looked after: "true", or nothing. */}}
{{- define "pillion.agents" -}}
{{- if index .Values.featureGates "InPodAgent" -}}true{{- end -}}
{{- end -}}

{{/* Whether a definition that others bring, too, is ours to install: "true", or nothing. One that is there and not ours is used as it is. */}}
{{- define "pillion.defines" -}}
{{- $root := index . 0 -}}
{{- $present := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" (index . 1) | default dict -}}
{{- $foreign := and $present (ne (dig "metadata" "labels" "app.kubernetes.io/part-of" "" $present) "pillion") -}}
{{- if and $root.Values.rightsizing.enabled (not $foreign) -}}true{{- end -}}
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
{{- if .Values.rightsizing.enabled -}}
rightsizer: [rightsizer]
{{ end -}}
{{- if eq .Values.layout "OnePod" -}}
manager: [webhook, controller{{ if include "pillion.agents" . }}, agent-controller{{ end }}]
{{- else -}}
{{- if include "pillion.agents" . -}}
agent-controller: [agent-controller]
{{ end -}}
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

{{/* What agents may write besides their pods: resources by group. */}}
{{- define "pillion.targets" -}}
{{- $groups := dict -}}
{{- range .Values.agent.targets -}}
{{- if hasKey (get $groups .group | default dict) .resource -}}
{{- fail (printf "agent.targets lists %s.%s twice: agents can write one field of a resource" .resource .group) -}}
{{- end -}}
{{- $_ := set $groups .group (merge (dict .resource true) (get $groups .group | default dict)) -}}
{{- end -}}
{{- $groups | toYaml -}}
{{- end -}}

{{/*
The parts of a request by which a policy on agents identifies the agent. The service account of an agent is called
pillion-agent- and the name of its configuration; its token names the pod it was issued for.
*/}}
{{- define "pillion.agent-condition" -}}
- name: agents
  expression: >-
    request.userInfo.username.matches('^system:serviceaccount:[^:]+:pillion-agent-.+$')
    && request.userInfo.username != 'system:serviceaccount:{{ .Release.Namespace }}:pillion-agent-controller'
{{- end -}}
{{- define "pillion.agent-variables" -}}
- name: account
  expression: request.userInfo.username.split(':')
- name: config
  expression: variables.account[3].substring(14)
- name: pod
  expression: "request.userInfo.?extra[?'authentication.kubernetes.io/pod-name'].orValue([]).join(',')"
- name: podUid
  expression: "request.userInfo.?extra[?'authentication.kubernetes.io/pod-uid'].orValue([]).join(',')"
- name: subresource
  expression: request.?subResource.orValue('')
- name: what
  expression: "request.resource.resource + (variables.subresource == '' ? '' : '/' + variables.subresource)"
- name: who
  expression: >-
    'the agent of ' + (variables.pod == '' ? 'no pod' : 'pod ' + variables.account[2] + '/' + variables.pod)
    + ' with configuration ' + variables.config
- name: place
  expression: variables.what + ' ' + request.?namespace.orValue('') + '/' + request.?name.orValue('')
- name: updates
  expression: request.operation == 'UPDATE'
# Every changed field of the metadata besides labels and annotations, by name.
- name: wrongMetadata
  expression: >-
    !variables.updates ? [] :
    dyn(object.metadata).filter(key,
      !(key in ['annotations', 'labels', 'managedFields', 'resourceVersion', 'generation'])
      && object.metadata[?key] != oldObject.metadata[?key]
    ).map(key, 'metadata.' + key)
    + dyn(oldObject.metadata).filter(key,
      !(key in ['annotations', 'labels', 'managedFields']) && !(key in object.metadata)
    ).map(key, 'metadata.' + key)
- name: changedLabels
  expression: >-
    !variables.updates ? [] : (
      object.metadata.?labels.orValue({}).filter(key,
        oldObject.metadata.?labels[?key] != optional.of(object.metadata.labels[key]))
      + oldObject.metadata.?labels.orValue({}).filter(key, !(key in object.metadata.?labels.orValue({}))))
- name: changedAnnotations
  expression: >-
    !variables.updates ? [] : (
      object.metadata.?annotations.orValue({}).filter(key,
        oldObject.metadata.?annotations[?key] != optional.of(object.metadata.annotations[key]))
      + oldObject.metadata.?annotations.orValue({}).filter(key, !(key in object.metadata.?annotations.orValue({}))))
{{- end -}}

{{/* The keys and values that configurations list. The agent controller writes them. */}}
{{- define "pillion.agent-params" -}}
- name: params
  expression: params.?data.orValue({})
{{- end -}}
{{- define "pillion.agent-param-ref" -}}
paramRef:
  name: pillion-agent-policy-params
  namespace: {{ .Release.Namespace }}
  parameterNotFoundAction: Allow
{{- end -}}
