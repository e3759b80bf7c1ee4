//go:build tools

// Package kubernetes pins the Kubernetes control plane that the local cluster builds when no
// binaries can be found or downloaded.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
