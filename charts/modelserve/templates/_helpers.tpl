{{- define "modelserve.labels" -}}
app.kubernetes.io/name: modelserve
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* The pods of one component, by its name. */}}
{{- define "modelserve.selector" -}}
app.kubernetes.io/name: modelserve
app.kubernetes.io/component: {{ . }}
{{- end -}}

{{- define "modelserve.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{- define "modelserve.tokenSecret" -}}
{{ .Values.token.existingSecret | default "modelserve-internal" }}
{{- end -}}
