package agent

import (
	"cmp"
	"runtime/debug"
)

// version, commit and date are set by the linker (-X in the Makefile). Without it the
// Go command's own record of the build is used.
var version, commit, date string

// BuildInfo names a build: its version and the commit that it was built from, each
// where it is known.
type BuildInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Date    string `json:"date,omitempty"` // of the commit, RFC 3339
}

// Version names this build.
func Version() string { return Build().Version }

// Build describes this build.
func Build() BuildInfo {
	recorded := map[string]string{}
	module := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		module = info.Main.Version
		for _, s := range info.Settings {
			recorded[s.Key] = s.Value
		}
	}
	b := BuildInfo{Commit: cmp.Or(commit, recorded["vcs.revision"]), Date: cmp.Or(date, recorded["vcs.time"])}
	if module == "(devel)" || module == "" {
		module = "devel"
		if len(b.Commit) >= 12 {
			module = "commit-" + b.Commit[:12]
		}
	}
	b.Version = cmp.Or(version, module)
	return b
}
