{{- /*
The sidecar that asks the API server who may call. The planner listens on loopback; probes pass, everything else needs a
right of the caller: `/metrics` that of a scraper, `/v1/…` the virtual subresource `inferenceserviceclasses/planner` with the
verb of the method (GET → get, POST → create). Arguments: (list . <planner's port>)
*/ -}}
{{- define "ai_inference.kube_rbac_proxy.container" -}}
{{- $context := index . 0 -}}
{{- $port := index . 1 -}}
- name: kube-rbac-proxy
  image: {{ include "ai_inference.module.common_image" (list $context "kubeRbacProxy") }}
  {{- include "ai_inference.module.container_security" nil | nindent 2 }}
  args:
    - --secure-listen-address=$(KUBE_RBAC_PROXY_LISTEN_ADDRESS):8443
    - --livez-path=/livez
    - --v=2
    - --logtostderr=true
    - --stale-cache-interval=1h30m
  env:
    - name: KUBE_RBAC_PROXY_LISTEN_ADDRESS
      valueFrom:
        fieldRef:
          fieldPath: status.podIP
    - name: KUBE_RBAC_PROXY_CONFIG
      value: |
        excludePaths:
          - /healthz
          - /readyz
        upstreams:
          - upstream: http://127.0.0.1:{{ $port }}/
            path: /
            authorization:
              resourceAttributes:
                apiGroup: ai.deckhouse.io
                apiVersion: v1alpha1
                resource: inferenceserviceclasses
                subresource: planner
          - upstream: http://127.0.0.1:{{ $port }}/metrics
            path: /metrics
            authorization:
              resourceAttributes:
                namespace: d8-ai-inference
                apiGroup: apps
                apiVersion: v1
                resource: deployments
                subresource: prometheus-metrics
                name: resource-planner
  ports:
    - name: https
      containerPort: 8443
  livenessProbe:
    httpGet:
      path: /livez
      port: https
      scheme: HTTPS
  readinessProbe:
    httpGet:
      path: /livez
      port: https
      scheme: HTTPS
  resources:
    requests:
      cpu: 10m
      memory: 25Mi
      ephemeral-storage: 50Mi
{{- end }}
