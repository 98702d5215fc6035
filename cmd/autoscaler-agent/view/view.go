// Package view has the forms of what commands print for programs (--output json, yaml). The
// names of their fields are promises.
//
// It refuses to print: the commands do.
package view

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint"
)

// Version is what version prints.
type Version struct {
	version.Info
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// CreatedToken is what token create prints. Token is secret.
type CreatedToken struct {
	ID       string    `json:"id"`
	Token    string    `json:"token"`
	Expires  time.Time `json:"expires"`
	Instance string    `json:"instance,omitempty"`
}

// RevokedToken is what token revoke prints.
type RevokedToken struct {
	ID      string `json:"id"`
	Revoked bool   `json:"revoked"`
}

// Lint is what userdata lint prints.
type Lint struct {
	File   string `json:"file"`
	Bytes  int    `json:"bytes"`
	Faults int    `json:"faults"`
	// APIServerVersion is the one that the user data was judged for, where it is known.
	APIServerVersion string         `json:"apiServerVersion,omitempty"`
	Findings         []lint.Finding `json:"findings"`
}

// LintOf judges the user data of a file.
func LintOf(file string, data []byte, o lint.Options) Lint {
	v := Lint{File: file, Bytes: len(data), APIServerVersion: o.APIServerVersion, Findings: []lint.Finding{}}
	for _, f := range lint.Check(data, o) {
		v.Findings = append(v.Findings, f)
		if f.Fails {
			v.Faults++
		}
	}
	return v
}

// Download is one file of what userdata downloads prints.
type Download struct {
	Name   string `json:"name"`
	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
	Path   string `json:"path"` // below a mirror
}

// Downloads is what userdata downloads prints.
func Downloads(list []userdata.Download) []Download {
	out := make([]Download, len(list))
	for i, d := range list {
		out[i] = Download(d)
	}
	return out
}
