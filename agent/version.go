package agent

import "runtime/debug"

// version is set by the linker (-X); without it the module's own version or commit
// stands in.
var version string

// Version names this build.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "commit-" + s.Value[:12]
		}
	}
	return "devel"
}
