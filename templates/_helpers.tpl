{{- /*
What Deckhouse's helper chart (lib-helm) would give, as far as this module needs it and under the same names of values.
Every template of the module's own release stands in `if not .Values.aiInference.internal.order`: the hook `orders` renders
the same chart with an order in it, and the two renders share no object.
*/ -}}

{{- /* Labels of an object. Arguments: (list . <map of further labels>) */ -}}
{{- define "ai_inference.module.labels" -}}
labels:
  heritage: deckhouse
  module: ai-inference
  {{- with index . 1 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* An image of this module by digest. Arguments: (list . <camelCase name>) */ -}}
{{- define "ai_inference.module.image" -}}
{{- $context := index . 0 }}
{{- $digests := index (($context.Values.global.modulesImages).digests | default dict) "aiInference" | default dict }}
{{- $digest := index $digests (index . 1) | default "" }}
{{- if not $digest }}{{ fail (printf "global.modulesImages.digests.aiInference has no %s" (index . 1)) }}{{ end }}
{{- $own := ($context.Values.aiInference.registry).base }}
{{- if $own }}
{{- printf "%s/ai-inference@%s" (trimSuffix "/" $own) $digest }}
{{- else }}
{{- printf "%s@%s" (($context.Values.global.modulesImages).registry).base $digest }}
{{- end }}
{{- end }}

{{- /* An image that Deckhouse shares between modules, by digest. Arguments: (list . <camelCase name>) */ -}}
{{- define "ai_inference.module.common_image" -}}
{{- $images := (index . 0).Values.global.modulesImages }}
{{- $digest := index (index ($images.digests | default dict) "common" | default dict) (index . 1) | default "" }}
{{- if not $digest }}{{ fail (printf "global.modulesImages.digests.common has no %s" (index . 1)) }}{{ end }}
{{- printf "%s@%s" ($images.registry).base $digest }}
{{- end }}

{{- /* "true" where components run in two copies, else empty. Argument: . */ -}}
{{- define "ai_inference.module.ha" -}}
{{- if hasKey .Values.aiInference "highAvailability" }}
{{- if .Values.aiInference.highAvailability }}true{{ end }}
{{- else if hasKey .Values.global "highAvailability" }}
{{- if .Values.global.highAvailability }}true{{ end }}
{{- else if (.Values.global.discovery).clusterControlPlaneIsHighlyAvailable }}true{{ end }}
{{- end }}

{{- /* Copies and how they are replaced. Argument: . */ -}}
{{- define "ai_inference.module.replicas" -}}
{{- if include "ai_inference.module.ha" . -}}
replicas: 2
strategy:
  type: RollingUpdate
  rollingUpdate:
    maxSurge: 0
    maxUnavailable: 1
{{- else -}}
replicas: 1
strategy:
  type: RollingUpdate
  rollingUpdate:
    maxSurge: 1
    maxUnavailable: 0
{{- end }}
{{- end }}

{{- /* Copies on different nodes; nothing where there is one copy. Arguments: (list . <app>) */ -}}
{{- define "ai_inference.module.anti_affinity" -}}
{{- if include "ai_inference.module.ha" (index . 0) -}}
affinity:
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - labelSelector:
          matchLabels:
            app: {{ index . 1 }}
        topologyKey: kubernetes.io/hostname
{{- end }}
{{- end }}

{{- /* The class exists only where Deckhouse's module makes it. Arguments: (list . <name>) */ -}}
{{- define "ai_inference.module.priority_class" -}}
{{- if has "priority-class" ((index . 0).Values.global.enabledModules | default list) -}}
priorityClassName: {{ index . 1 }}
{{- end }}
{{- end }}

{{- /* Nodes of the module, else system nodes, where the cluster has such; any node otherwise. Argument: . */ -}}
{{- define "ai_inference.module.node_selector" -}}
{{- $roles := (.Values.global.discovery).d8SpecificNodeCountByRole | default dict }}
{{- if gt (int (index $roles "ai-inference" | default 0)) 0 -}}
nodeSelector:
  node-role.deckhouse.io/ai-inference: ""
{{- else if gt (int (index $roles "system" | default 0)) 0 -}}
nodeSelector:
  node-role.deckhouse.io/system: ""
{{- end }}
{{- end }}

{{- /* Tolerations of a system component. No arguments. */ -}}
{{- define "ai_inference.module.tolerations" -}}
tolerations:
  - key: dedicated.deckhouse.io
    operator: Equal
    value: ai-inference
  - key: dedicated.deckhouse.io
    operator: Equal
    value: system
{{- end }}

{{- /* Security context of a pod: Deckhouse's unprivileged user. No arguments. */ -}}
{{- define "ai_inference.module.pod_security" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 64535
  runAsGroup: 64535
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- /* Security context of a container: nothing to gain, nothing to write. No arguments. */ -}}
{{- define "ai_inference.module.container_security" -}}
securityContext:
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  runAsUser: 64535
  runAsGroup: 64535
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- /* A scrape timeout that is no longer than the interval. Arguments: (list . <seconds>) */ -}}
{{- define "ai_inference.module.scrape_timeout" -}}
{{- min (index . 1) (int (((index . 0).Values.global.discovery).prometheusScrapeInterval | default 30)) }}s
{{- end }}

{{- /*
"true" when the cluster serves an optional kind, else empty. Asked of the API server and of what Deckhouse discovered: the
operator's own list is only read when it starts. Arguments: (list . <group/version/Kind>)
*/ -}}
{{- define "ai_inference.module.served" -}}
{{- $context := index . 0 }}
{{- $kind := index . 1 }}
{{- if or ($context.Capabilities.APIVersions.Has $kind) (has $kind ((($context.Values.global).discovery).apiVersions | default list)) -}}
true
{{- end }}
{{- end }}
