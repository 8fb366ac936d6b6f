{{- /* Names, labels and what the programs' pods have in common. */ -}}

{{- define "flexinfer.name" -}}
{{- if contains "flexinfer" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-flexinfer" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end -}}

{{- /* Takes a dict of root and component. */ -}}
{{- define "flexinfer.selector" -}}
app.kubernetes.io/name: flexinfer
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "flexinfer.labels" -}}
{{ include "flexinfer.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- /* An image, given as text or as a map. */ -}}
{{- define "flexinfer.image" -}}
{{- if kindIs "string" . }}{{ . }}
{{- else }}{{ .repository }}{{ with .tag }}:{{ . }}{{ end }}{{ with .digest }}@{{ . }}{{ end }}{{ end }}
{{- end -}}

{{- /* What is pinned cannot change, so it need not be asked for. */ -}}
{{- define "flexinfer.pullPolicy" -}}
{{- $image := . }}
{{- if kindIs "string" $image }}{{ $image = dict "tag" (regexFind ":[^:/]+$" $image) "digest" (regexFind "@.+$" $image) }}{{ end }}
{{- $changes := has ($image.tag | default ":latest" | trimPrefix ":") (list "latest") }}
{{- $image.pullPolicy | default (ternary "Always" "IfNotPresent" (and $changes (not $image.digest))) }}
{{- end -}}

{{- /* Variables that say what is set, and nothing where the program's own default holds. */ -}}
{{- define "flexinfer.variables" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{- define "flexinfer.tracing" -}}
{{- with .Values.observability.tracing }}
{{- if .enabled }}
- name: FLEXINFER_OTEL_ENABLED
  value: "true"
{{- with .otlpEndpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with .serviceNamespace }}
- name: FLEXINFER_OTEL_SERVICE_NAMESPACE
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "flexinfer.self" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- end -}}

{{- /* The pod's scheduling, from a component's values. */ -}}
{{- define "flexinfer.placing" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* No program of ours needs more. */ -}}
{{- define "flexinfer.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* Rules in the release's namespace, or in all. Takes a dict of root, component and rules (YAML). */ -}}
{{- define "flexinfer.rules" -}}
{{- $everywhere := .root.Values.allNamespaces }}
{{- $name := printf "%s-%s" (include "flexinfer.name" .root) .component }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "ClusterRole" "Role" $everywhere }}
metadata:
  name: {{ $name }}{{ if $everywhere }}-models{{ end }}
  {{- if not $everywhere }}
  namespace: {{ .root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "flexinfer.labels" . | nindent 4 }}
rules:
  {{- .rules | trim | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "ClusterRoleBinding" "RoleBinding" $everywhere }}
metadata:
  name: {{ $name }}{{ if $everywhere }}-models{{ end }}
  {{- if not $everywhere }}
  namespace: {{ .root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "flexinfer.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ ternary "ClusterRole" "Role" $everywhere }}
  name: {{ $name }}{{ if $everywhere }}-models{{ end }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{- /* Rules about what lies in no namespace. The same dict. */ -}}
{{- define "flexinfer.clusterRules" -}}
{{- $name := printf "%s-%s" (include "flexinfer.name" .root) .component }}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}-{{ .root.Release.Namespace }}
  labels:
    {{- include "flexinfer.labels" . | nindent 4 }}
rules:
  {{- .rules | trim | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}-{{ .root.Release.Namespace }}
  labels:
    {{- include "flexinfer.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}-{{ .root.Release.Namespace }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{- define "flexinfer.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "flexinfer.name" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "flexinfer.labels" . | nindent 4 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* The Service of the webhooks, and the Secret with their certificates. */ -}}
{{- define "flexinfer.webhooks" -}}
{{ include "flexinfer.name" . }}-webhooks
{{- end -}}

{{- /* What the webhooks have in common. Takes a dict of root, path and resources. */ -}}
{{- define "flexinfer.webhook" -}}
{{- with .root.Values.controller.webhooks -}}
admissionReviewVersions: [v1]
clientConfig:
  # Whom to trust is written by the controller.
  service:
    name: {{ include "flexinfer.webhooks" $.root }}
    namespace: {{ $.root.Release.Namespace }}
    path: {{ $.path }}
    port: 443
failurePolicy: {{ .failurePolicy }}
timeoutSeconds: {{ .timeoutSeconds }}
matchPolicy: Equivalent
sideEffects: None
rules:
  - apiGroups: [inference.flexinfer.ai]
    apiVersions: [v1alpha2]
    operations: [CREATE, UPDATE]
    resources: {{ toJson $.resources }}
    scope: Namespaced
{{- if or .namespaceSelector (not $.root.Values.allNamespaces) }}
namespaceSelector:
  {{- toYaml (.namespaceSelector | default (dict "matchLabels" (dict "kubernetes.io/metadata.name" $.root.Release.Namespace))) | nindent 2 }}
{{- end }}
matchConditions:
  # What the controller itself writes, finalizers, has to be possible while nobody answers.
  - name: not-by-the-controller
    expression: {{ printf "request.userInfo.username != 'system:serviceaccount:%s:%s-controller'" $.root.Release.Namespace (include "flexinfer.name" $.root) | quote }}
{{- end -}}
{{- end -}}
