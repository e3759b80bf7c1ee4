//go:build tools

// Package kubelet pins the kubelet that recordings of real pods are made with.
package kubelet

import _ "k8s.io/kubernetes/cmd/kubelet"
