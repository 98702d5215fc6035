//go:build tools

// Package tools names the programs that the tests of a leader build: docs/leader.md saves and restores with them. It
// refuses to be linked into anything.
package tools

import (
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/etcdutl/v3"
)
