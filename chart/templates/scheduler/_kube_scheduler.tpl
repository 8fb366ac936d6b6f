{{- /* The kube-scheduler that asks the extender, in the same pod: they never lose sight of each other. */ -}}

{{- define "flexinfer.kubeScheduler.configuration" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceName: {{ include "flexinfer.name" . }}-kube-scheduler
  resourceNamespace: {{ .Release.Namespace }}
profiles:
  - schedulerName: {{ .Values.scheduler.kubeScheduler.name }}
extenders:
  - urlPrefix: http://127.0.0.1:{{ .Values.scheduler.port }}
    filterVerb: filter
    prioritizeVerb: prioritize
    weight: {{ .Values.scheduler.kubeScheduler.weight }}
    nodeCacheCapable: true
    httpTimeout: 5s
    ignorable: {{ .Values.scheduler.kubeScheduler.ignorable }}
{{- end -}}

{{- define "flexinfer.kubeScheduler" -}}
{{- with .Values.scheduler.kubeScheduler }}
{{- /* A distribution's version has more to it than the image's: v1.36.3+k3s1. */}}
{{- $version := regexFind "^v[0-9]+[.][0-9]+[.][0-9]+" $.Capabilities.KubeVersion.Version }}
{{- $image := .image | default (printf "registry.k8s.io/kube-scheduler:%s" $version) }}
- name: kube-scheduler
  image: {{ include "flexinfer.image" $image }}
  imagePullPolicy: {{ include "flexinfer.pullPolicy" $image }}
  command: [kube-scheduler]
  args: [--config=/etc/flexinfer/configuration.yaml]
  ports:
    - name: health
      containerPort: 10259
  livenessProbe:
    httpGet: {path: /livez, port: health, scheme: HTTPS}
    initialDelaySeconds: 10
  readinessProbe:
    httpGet: {path: /readyz, port: health, scheme: HTTPS}
    periodSeconds: 2
  resources:
    {{- toYaml .resources | nindent 4 }}
  volumeMounts:
    - name: configuration
      mountPath: /etc/flexinfer
      readOnly: true
  securityContext:
    {{- include "flexinfer.confined" $ | nindent 4 }}
{{- end }}
{{- end -}}
