package doctor

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// GroupsFile judges a groups.yaml alone: no setting is asked, so that it can be judged where it
// is written.
func GroupsFile(path string) ([]Finding, error) {
	if _, err := os.Stat(path); err != nil { // Config takes a missing file for an empty one
		return nil, err
	}
	out := checkGroupsFile(config.OnlyGroupsFile(path))
	if len(out) == 0 {
		out = []Finding{{Level: LevelOK, About: "groups.yaml", Text: path + ": nothing is set"}}
	}
	return slices.DeleteFunc(out, func(f Finding) bool { return f.Level == LevelWarning }), nil // they compare with the provider
}

// checkGroupsFile is what `check` finds in groups.yaml without the cloud.
func checkGroupsFile(cfg config.Config) []Finding {
	file, err := cfg.ReadGroupsFile()
	if err != nil {
		var out []Finding
		for line := range strings.SplitSeq(err.Error(), "\n") { // one mistake a line
			out = append(out, Finding{Level: LevelError, About: "groups.yaml", Text: line, Remedy: "groups.yaml.example shows every field"})
		}
		return out
	}
	var out []Finding
	for _, name := range cfg.MissingSections(&file) {
		out = append(out, Finding{Level: LevelError, About: "groups.yaml", Text: fmt.Sprintf("%s has no section %s, which describes the node groups", cfg.GroupsFile, name),
			Remedy: "write it: docs/providers/" + name + ".md shows one"})
	}
	if len(file.Groups)+len(file.Headroom)+len(file.Clouds) == 0 {
		return out
	}
	text := fmt.Sprintf("%s: %d groups, %d headroom", cfg.GroupsFile, len(file.Groups), len(file.Headroom))
	for _, name := range slices.Sorted(maps.Keys(file.Clouds)) {
		text += ", section " + name
	}
	out = append(out, Finding{Level: LevelOK, About: "groups.yaml", Text: text})
	if why := cfg.IdleSections(&file); why != "" {
		out = append(out, Finding{Level: LevelWarning, About: "groups.yaml", Text: why})
	}
	return out
}

// layFile lays groups.yaml over groups that were just read, and finds the names that
// no group has.
func layFile(cfg config.Config, list []cluster.NodeGroup, readErr error) []Finding {
	file, err := cfg.ReadGroupsFile()
	if err != nil {
		return nil // checkGroupsFile has said so
	}
	why := config.UnknownGroups(&file, list, readErr)
	file.Apply(list, cfg.Kubelet.Reservation())
	if why == "" {
		return nil
	}
	return []Finding{{Level: LevelWarning, About: "groups.yaml", Text: why}}
}
