package agent

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
)

// readGroupsFile reads groups.yaml once, for a command.
func readGroupsFile(cfg Config) (groups.File, error) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	live, err := groups.Open(cfg.GroupsFile, sections(), logrus.NewEntry(quiet))
	if err != nil {
		return groups.File{}, err
	}
	return live.File(), nil
}

// checkGroupsFile is what `check` finds in groups.yaml without the cloud.
func checkGroupsFile(cfg Config) []Finding {
	file, err := readGroupsFile(cfg)
	if err != nil {
		var out []Finding
		for line := range strings.SplitSeq(err.Error(), "\n") { // one mistake a line
			out = append(out, Finding{Level: LevelError, About: "groups.yaml", Text: line, Remedy: "groups.yaml.example shows every field"})
		}
		return out
	}
	if len(file.Groups)+len(file.Headroom)+len(file.Clouds) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s: %d groups, %d headroom", cfg.GroupsFile, len(file.Groups), len(file.Headroom))
	for _, name := range slices.Sorted(maps.Keys(file.Clouds)) {
		text += ", section " + name
	}
	out := []Finding{{Level: LevelOK, About: "groups.yaml", Text: text}}
	if why := idleSections(cfg, &file); why != "" {
		out = append(out, Finding{Level: LevelWarning, About: "groups.yaml", Text: why})
	}
	return out
}

// idleSections says which sections belong to a provider that is not switched on.
func idleSections(cfg Config, file *groups.File) string {
	names, _ := all.Split(cfg.Provider) // a wrong list is told as configuration
	var idle []string
	for name := range file.Clouds {
		if slices.Contains(all.Names(), name) && !slices.Contains(names, name) {
			idle = append(idle, name)
		}
	}
	if len(idle) == 0 {
		return ""
	}
	slices.Sort(idle)
	return fmt.Sprintf("nobody reads section %s: add the name to %s_PROVIDER, which is %q", strings.Join(idle, ", "), Prefix, cfg.Provider)
}

// layFile lays groups.yaml over groups that were just read, and finds the names that
// no group has.
func layFile(cfg Config, list []cluster.NodeGroup, readErr error) []Finding {
	file, err := readGroupsFile(cfg)
	if err != nil {
		return nil // checkGroupsFile has said so
	}
	why := unknownGroups(&file, list, readErr)
	file.Apply(list, cfg.Kubelet.Reservation())
	if why == "" {
		return nil
	}
	return []Finding{{Level: LevelWarning, About: "groups.yaml", Text: why}}
}

// unknownGroups says which names of groups.yaml find none of the groups; nothing while
// the cloud is not read whole.
func unknownGroups(file *groups.File, list []cluster.NodeGroup, err error) string {
	if err != nil {
		return ""
	}
	if unknown := file.Unknown(list); len(unknown) > 0 {
		return "no node group is called " + strings.Join(unknown, ", ") + ": correct the name or remove the entry"
	}
	return ""
}
