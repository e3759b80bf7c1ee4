//go:build tools

// Package etcd pins the etcd server that the local cluster builds when no binaries can be found
// or downloaded.
package etcd

import _ "go.etcd.io/etcd/server/v3"
