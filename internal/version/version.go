// Package version names the build that runs: its version, its commit and the date of
// that commit. The log's first line, the local API, the recorded rounds and the
// User-Agent of the Kubernetes clients say it.
//
// Small and apart: the linker writes into it by its path. It refuses to read anything but what the linker and the Go command wrote into the
// binary.
package version

import (
	"cmp"
	"runtime/debug"
)

// version, commit and date are set by the linker (-X in the Makefile, which names this
// package and these variables). Without it the Go command's own record of the build is
// used.
var version, commit, date string

// Info names a build: its version and the commit that it was built from, each
// where it is known.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Date    string `json:"date,omitempty"` // of the commit, RFC 3339
}

// Current is the version of this build.
func Current() string { return Build().Version }

// Build describes this build.
func Build() Info {
	recorded := map[string]string{}
	module := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		module = info.Main.Version
		for _, s := range info.Settings {
			recorded[s.Key] = s.Value
		}
	}
	b := Info{Commit: cmp.Or(commit, recorded["vcs.revision"]), Date: cmp.Or(date, recorded["vcs.time"])}
	if module == "(devel)" || module == "" {
		module = "devel"
		if len(b.Commit) >= 12 {
			module = "commit-" + b.Commit[:12]
		}
	}
	b.Version = cmp.Or(version, module)
	return b
}
