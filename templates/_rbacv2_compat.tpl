{{- /*
Which of Deckhouse's two role models the roles are rendered for: "capabilities" from 1.78 on, "permissions" before.
A role of the older model is a cluster-wide grant on the newer one, so whatever is not clearly older (development builds,
an unknown version, no Deckhouse at all) gets the newer one. Argument: .
*/ -}}
{{- define "ai_inference.rbacv2.scheme" -}}
{{- $version := regexFind "^v?[0-9]+\\.[0-9]+" (.Values.global.deckhouseVersion | default "" | toString) | trimPrefix "v" }}
{{- $parts := splitList "." $version }}
{{- if eq $version "" -}}
capabilities
{{- else if or (gt (int (index $parts 0)) 1) (and (eq (int (index $parts 0)) 1) (ge (int (index $parts 1)) 78)) -}}
capabilities
{{- else -}}
permissions
{{- end }}
{{- end }}
