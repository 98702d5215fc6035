package agent

import (
	"fmt"
	"io"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
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
	if len(file.Groups)+len(file.Headroom) == 0 {
		return nil
	}
	return []Finding{{Level: LevelOK, About: "groups.yaml", Text: fmt.Sprintf("%s: %d groups, %d headroom", cfg.GroupsFile, len(file.Groups), len(file.Headroom))}}
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
