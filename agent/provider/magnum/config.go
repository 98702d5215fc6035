package magnum

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Config defines which node groups are ours. Under the product's prefix its variables are
// AUTOSCALER_MAGNUM_CLUSTER and so on; how OpenStack is reached is said by
// AUTOSCALER_OPENSTACK_*.
type Config struct {
	// Cluster is the UUID or the name of the Magnum cluster, as `openstack coe cluster
	// list` shows it.
	Cluster string `split_words:"true" pattern:"[^/?# \t]+" write:"the UUID or the name of a Magnum cluster, as openstack coe cluster list shows it" desc:"UUID or name of the Magnum cluster."`
	// AutoDiscovery lists rules in Cluster Autoscaler's form, "magnum:role=worker,gpu":
	// a node group with one of the roles that has a max_node_count is ours. Several rules
	// may be separated by semicolons or white space.
	AutoDiscovery Discovery `split_words:"true" desc:"Rules that find node groups, such as magnum:role=worker,gpu."`
	// Groups names node groups one by one, as "name" or as "min:max:name". The name
	// DefaultNodeGroup, which Cluster Autoscaler's first Magnum provider used, means the
	// cluster's default worker group.
	Groups []string `split_words:"true" form:"text" desc:"Node groups by name, or as min:max:name, comma-separated."`
	// Heat is whether Heat is read for the servers of a node group: "auto" where
	// the catalog has it and it may be read, or "never".
	Heat string `split_words:"true" default:"auto" oneof:"auto,never" desc:"Whether Heat is read for the servers of a group: auto or never."`
	// RemovesByName is whether the cluster's driver honours nodes_to_remove: "auto"
	// knows Magnum's Heat drivers and magnum-cluster-api (they do) and magnum-capi-helm
	// (it does not); "yes" or "no" for others.
	RemovesByName string `split_words:"true" default:"auto" oneof:"auto,yes,no" desc:"Whether the cluster's driver removes the server that is named: auto, yes or no."`
	// Arch is the processor architecture of the nodes, which Magnum does not know.
	Arch string `split_words:"true" default:"amd64" oneof:"amd64,arm64,arm,ppc64le,riscv64,s390x" desc:"Processor architecture of the workers, which Magnum does not know."`
	// VMMemoryOverheadPercent is the part of a flavor's memory that firmware and kernel
	// keep from the kubelet, until a real node of the same kind has been seen.
	VMMemoryOverheadPercent float64 `split_words:"true" default:"7.5" range:"0..<100" desc:"Share of a flavor's memory that never reaches the kubelet, until a real node has shown it."`
}

// Discovery is a list of rules "magnum:role=a,b".
type Discovery []string

var ruleStart = regexp.MustCompile(`(^|[\s,;])magnum:`)

// Decode splits the value of the environment variable into rules. The commas inside a
// rule separate roles.
func (d *Discovery) Decode(value string) error {
	*d = nil
	starts := ruleStart.FindAllStringIndex(value, -1)
	cut := func(from, to int) {
		if rule := strings.Trim(value[from:to], " \t\r\n,;"); rule != "" {
			*d = append(*d, rule)
		}
	}
	from := 0
	for _, at := range starts {
		cut(from, at[0])
		from = at[0]
	}
	cut(from, len(value))
	return nil
}

// named is one entry of Config.Groups. Bounds are -1 where the group's own hold.
type named struct {
	name     string
	min, max int
}

// legacyName is what the first Magnum provider of Cluster Autoscaler called the one
// group that a cluster had then.
const legacyName = "DefaultNodeGroup"

func parseNamed(s string) (named, error) {
	parts := strings.SplitN(strings.TrimSpace(s), ":", 3)
	switch {
	case parts[0] == "" && len(parts) == 1:
		return named{}, errors.New("an entry is empty; write name or min:max:name")
	case len(parts) == 1:
		return named{name: parts[0], min: -1, max: -1}, nil
	case len(parts) != 3 || parts[2] == "":
		return named{}, errors.New("write name or min:max:name")
	}
	lo, err1 := strconv.Atoi(parts[0])
	hi, err2 := strconv.Atoi(parts[1])
	switch {
	case err1 != nil || lo < 0:
		return named{}, fmt.Errorf("min %q is not a whole number of machines; write name or min:max:name", parts[0])
	case err2 != nil || hi < 0:
		return named{}, fmt.Errorf("max %q is not a whole number of machines; write name or min:max:name", parts[1])
	case lo > hi:
		return named{}, fmt.Errorf("min %d is above max %d; swap them", lo, hi)
	}
	return named{name: parts[2], min: lo, max: hi}, nil
}

func parseRule(s string) (roles []string, err error) {
	list, ok := strings.CutPrefix(s, "magnum:role=")
	if !ok {
		return nil, errors.New("a rule looks like magnum:role=worker,autoscaling")
	}
	for role := range strings.SplitSeq(list, ",") {
		switch role = strings.TrimSpace(role); role {
		case "":
			return nil, errors.New("a role is empty; a rule looks like magnum:role=worker,autoscaling")
		case masterRole:
			return nil, errors.New("the group of the master nodes is never scaled; leave the role master out")
		}
		roles = append(roles, role)
	}
	return roles, nil
}

// masterRole is the role of the control plane's node group.
const masterRole = "master"

// Validate returns every mistake of the configuration, joined, each with the name of
// its variable and what to write instead.
func (c Config) Validate() error {
	_, _, err := c.parse()
	errs := []error{err}
	bad := func(variable, value, what string) {
		errs = append(errs, fmt.Errorf("AUTOSCALER_MAGNUM_%s: %q: %s", variable, value, what))
	}
	switch {
	case c.Cluster == "":
		errs = append(errs, errors.New("AUTOSCALER_MAGNUM_CLUSTER: it is not set; write the UUID or the name that `openstack coe cluster list` shows"))
	case strings.ContainsAny(c.Cluster, "/?# \t"):
		bad("CLUSTER", c.Cluster, "this is neither a UUID nor the name of a Magnum cluster")
	}
	if len(c.AutoDiscovery) == 0 && len(c.Groups) == 0 {
		errs = append(errs, errors.New("AUTOSCALER_MAGNUM_AUTO_DISCOVERY: no node groups are configured; set it (magnum:role=worker), or AUTOSCALER_MAGNUM_GROUPS"))
	}
	if !slices.Contains([]string{"auto", "never"}, c.Heat) {
		bad("HEAT", c.Heat, "write auto or never")
	}
	if !slices.Contains([]string{"auto", "yes", "no"}, c.RemovesByName) {
		bad("REMOVES_BY_NAME", c.RemovesByName, "write auto, yes or no")
	}
	if c.Arch == "" || strings.ContainsAny(c.Arch, " /_") {
		bad("ARCH", c.Arch, "write an architecture as Kubernetes calls it, amd64 or arm64")
	}
	if !(c.VMMemoryOverheadPercent >= 0 && c.VMMemoryOverheadPercent < 100) {
		bad("VM_MEMORY_OVERHEAD_PERCENT", strconv.FormatFloat(c.VMMemoryOverheadPercent, 'g', -1, 64), "write a percentage from 0 to below 100 (7.5 unless you know better)")
	}
	return errors.Join(errs...)
}

// parse turns the strings of the configuration into roles and names.
func (c Config) parse() (roles []string, names []named, err error) {
	var errs []error
	for _, s := range c.AutoDiscovery {
		rule, err := parseRule(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("AUTOSCALER_MAGNUM_AUTO_DISCOVERY: %q: %w", s, err))
			continue
		}
		roles = append(roles, rule...)
	}
	seen := map[string]bool{}
	for _, s := range c.Groups {
		n, err := parseNamed(s)
		if err == nil && seen[n.name] {
			err = errors.New("the group is named twice; keep one entry")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("AUTOSCALER_MAGNUM_GROUPS: %q: %w", s, err))
			continue
		}
		seen[n.name] = true
		names = append(names, n)
	}
	return roles, names, errors.Join(errs...)
}

// nameFor finds the entry of Config.Groups for a node group.
func nameFor(names []named, g *nodeGroup) (named, bool) {
	for _, n := range names {
		if n.name == g.Name || n.name == legacyName && g.IsDefault && g.Role != masterRole {
			return n, true
		}
	}
	return named{}, false
}
