package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// Names of the operator's own inventories in groups.yaml: of workers, and of the control plane.
const (
	machinesSection     = "machines"
	controlPlaneSection = "controlPlane"
)

// sections are the readers of all sections of groups.yaml beside the groups themselves.
func sections() map[string]groups.Section {
	out := map[string]groups.Section{}
	for name, read := range all.Sections() {
		out[name] = read
	}
	out[machinesSection] = func(section json.RawMessage) error {
		_, err := rules.ParseMachines(section)
		return err
	}
	out[controlPlaneSection] = func(section json.RawMessage) error {
		_, err := rules.ParseControlPlane(section)
		return err
	}
	return out
}

// Machines reads the operator's own inventory as it is in force.
func Machines(settings *groups.Live) func() []rules.Machine {
	return func() []rules.Machine {
		list, err := rules.ParseMachines(settings.Section(machinesSection))
		if err != nil {
			return nil // only a section that was read without fault comes into force
		}
		return list
	}
}

// ControlPlane reads the operator's list of the control plane's machines as it is in force.
func ControlPlane(settings *groups.Live) func() []rules.Machine {
	return func() []rules.Machine {
		list, err := rules.ParseControlPlane(settings.Section(controlPlaneSection))
		if err != nil {
			return nil // only a section that was read without fault comes into force
		}
		return list
	}
}

// OpenGroupsFile reads groups.yaml and follows its changes.
func (c Config) OpenGroupsFile(log *logrus.Entry) (*groups.Live, error) {
	return groups.Open(c.GroupsFile, sections(), c.Prices, log)
}

// OnlyGroupsFile is a configuration that says nothing but where groups.yaml is.
func OnlyGroupsFile(path string) Config {
	return Config{GroupsFile: path, Prices: groups.PricesComputed}
}

// ReadGroupsFile reads groups.yaml once, for a command.
func (c Config) ReadGroupsFile() (groups.File, error) {
	if _, err := os.Stat(c.GroupsFile); c.groupsNamed && errors.Is(err, fs.ErrNotExist) {
		return groups.File{}, fmt.Errorf("%s is %q, and there is no such file: write it, or take the setting out", groupsVariable, c.GroupsFile)
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	live, err := c.OpenGroupsFile(logrus.NewEntry(quiet))
	if err != nil {
		return groups.File{}, err
	}
	return live.File(), nil
}

// GroupsNotInForce says that the file is wrong as it is now.
func GroupsNotInForce(file string) string {
	return file + " is not in force: it has mistakes, and the last good one holds (autoscaler-agent status)"
}

// IdleSections says which sections belong to a provider that is not switched on.
func (c Config) IdleSections(file *groups.File) string {
	names, _ := all.Split(c.Provider) // a wrong list is told as configuration
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
	return fmt.Sprintf("nobody reads section %s: add the name to %s_PROVIDER, which is %q", strings.Join(idle, ", "), Prefix, c.Provider)
}

// MissingSections are the providers that are switched on, have their groups in a section of groups.yaml, and have none there.
func (c Config) MissingSections(file *groups.File) []string {
	names, _ := all.Split(c.Provider)
	return slices.DeleteFunc(names, func(name string) bool { return !all.InSection(name) || len(file.Clouds[name]) > 0 })
}

// UnknownGroups says which names of groups.yaml find none of the groups; nothing while
// the cloud is not read whole.
func UnknownGroups(file *groups.File, list []cluster.NodeGroup, err error) string {
	if err != nil {
		return ""
	}
	if unknown := file.Unknown(list); len(unknown) > 0 {
		return "no node group is called " + strings.Join(unknown, ", ") + ": correct the name or remove the entry"
	}
	return ""
}
