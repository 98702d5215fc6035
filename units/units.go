// Package units holds the unit files and the Kubernetes manifests of the agent, so that
// `autoscaler-agent install` needs no file beside the binary. Small and apart: go:embed reads files of its own directory only. It refuses to
// interpret them: package install does.
package units

import "embed"

// Files are the files of this directory by their names.
//
//go:embed *.service *.timer *.yaml agent.env.example
var Files embed.FS
