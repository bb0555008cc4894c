{{- /* Metadata of an order's object. Arguments: (list <order values> <name> <own annotations, a map>) */ -}}
{{- define "ai_inference.order.metadata" -}}
{{- $order := index . 0 -}}
name: {{ index . 1 }}
namespace: {{ $order.namespace }}
labels: {{- toYaml $order.labels | nindent 2 }}
annotations:
  {{- toYaml $order.annotations | nindent 2 }}
  {{- with index . 2 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ownerReferences:
  - {{- toYaml $order.ownerReference | nindent 4 }}
{{- end }}

{{- /* Security context of every container of an order: what the Pod Security level "restricted" asks. No arguments. */ -}}
{{- define "ai_inference.order.container_security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* Requests equal to limits. Arguments: (list <cpu> <memory>) */ -}}
{{- define "ai_inference.order.resources" -}}
requests: {cpu: {{ index . 0 | quote }}, memory: {{ index . 1 | quote }}}
limits: {cpu: {{ index . 0 | quote }}, memory: {{ index . 1 | quote }}}
{{- end }}
