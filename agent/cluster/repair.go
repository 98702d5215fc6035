package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// RepairCondition is a condition of a Node that makes it sick, and for how long it has to.
type RepairCondition struct {
	Type   string
	Status Status        // of Ready StatusFalse or StatusUnknown, of others StatusTrue
	After  time.Duration // 0: the time that holds for all
}

// RepairConditions are written as TYPE[=STATUS][:DURATION], such as Ready=False:10m,DiskPressure:30m,KernelDeadlock.
type RepairConditions []RepairCondition

// Decode parses the list; envconfig calls it.
func (l *RepairConditions) Decode(value string) error {
	*l = nil
	for item := range strings.SplitSeq(value, ",") {
		var c RepairCondition
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if err := c.UnmarshalText([]byte(item)); err != nil {
			return err
		}
		if slices.ContainsFunc(*l, func(o RepairCondition) bool { return o.Type == c.Type && o.Status == c.Status }) {
			return fmt.Errorf("%s stands twice", item)
		}
		*l = append(*l, c)
	}
	return nil
}

var conditionType = regexp.MustCompile(`\A([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\z`)

// The bounds of a condition's own time are those of AUTOSCALER_SCALING_REPAIR_AFTER.
const leastRepair, mostRepair = time.Minute, 8760 * time.Hour

// UnmarshalText parses one condition.
func (c *RepairCondition) UnmarshalText(text []byte) (err error) {
	what, after, timed := strings.Cut(string(text), ":")
	name, status, said := strings.Cut(what, "=")
	*c = RepairCondition{Type: name, Status: StatusTrue}
	if timed {
		if c.After, err = time.ParseDuration(after); err != nil || c.After < leastRepair || c.After > mostRepair {
			return fmt.Errorf("%q: %q is no time from 1m to 8760h: write for example DiskPressure:30m", text, after)
		}
	}
	switch {
	case !conditionType.MatchString(name):
		return fmt.Errorf("%q: write the type of a Node's condition, for example KernelDeadlock, Ready=False:10m or DiskPressure:30m", text)
	case name == "Ready" && status == "False":
		c.Status = StatusFalse
	case name == "Ready" && status == "Unknown":
		c.Status = StatusUnknown
	case name == "Ready":
		return fmt.Errorf("%q: write Ready=False or Ready=Unknown, with a time such as Ready=False:10m: a node that is not Ready is sick without being named", text)
	case said && status != "True":
		return fmt.Errorf("%q: %s counts while it is True: write %s", text, name, name)
	}
	if name == "Ready" && !timed {
		return fmt.Errorf("%q: write a time, such as %s:10m: without one the time of AUTOSCALER_SCALING_REPAIR_AFTER holds, as for every node that is not Ready", text, what)
	}
	return nil
}

// MarshalText writes a condition as UnmarshalText reads it.
func (c RepairCondition) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

func (c RepairCondition) String() string {
	out := c.Type
	switch {
	case c.Type == "Ready" && c.Status == StatusFalse:
		out += "=False"
	case c.Type == "Ready":
		out += "=Unknown"
	}
	if c.After > 0 {
		out += ":" + c.After.String()
	}
	return out
}

// Since is since when a node has had a condition; zero: it has not.
func (c *RepairCondition) Since(n *Node) time.Time {
	switch {
	case c.Type != "Ready":
		return n.Conditions[c.Type]
	case n.Ready == c.Status:
		return n.ReadySince
	}
	return time.Time{}
}
