// Package flagvalue holds the forms of flags that the command line has beside pflag's own:
// pairs, labels, taints, amounts of resources and eviction thresholds; the older spellings of a
// command line, and what is wrong with a flag, in one sentence.
//
// It refuses a value that the configuration of the agent would refuse, and knows no command.
package flagvalue

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/internal/nodespec"
)

// Pairs is KEY=VALUE, given once for each key.
type Pairs map[string]string

// String is pflag.Value's.
func (p *Pairs) String() string { return "" }

// Type is pflag.Value's.
func (p *Pairs) Type() string { return "pair" }

// Set is pflag.Value's.
func (p *Pairs) Set(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok || strings.TrimSpace(key) == "" || strings.TrimSpace(value) == "" {
		return errors.New("write KEY=VALUE")
	}
	if *p == nil {
		*p = Pairs{}
	}
	if _, twice := (*p)[key]; twice {
		return fmt.Errorf("%s is given twice", key)
	}
	(*p)[key] = value
	return nil
}

// Labels is key=value of Nodes, given once for each key.
type Labels map[string]string

// String is pflag.Value's.
func (l *Labels) String() string { return "" }

// Type is pflag.Value's.
func (l *Labels) Type() string { return "label" }

// Set is pflag.Value's.
func (l *Labels) Set(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok {
		return errors.New("write key=value")
	}
	if err := nodespec.Label(key, value); err != nil {
		return err
	}
	if *l == nil {
		*l = Labels{}
	}
	if _, twice := (*l)[key]; twice {
		return fmt.Errorf("label %s is given twice", key)
	}
	(*l)[key] = value
	return nil
}

// Taints is key[=value]:effect of Nodes.
type Taints []cluster.Taint

// String is pflag.Value's.
func (t *Taints) String() string { return "" }

// Type is pflag.Value's.
func (t *Taints) Type() string { return "taint" }

// Set is pflag.Value's.
func (t *Taints) Set(s string) error {
	taint, err := nodespec.ParseTaint(s)
	if err != nil {
		return err
	}
	*t = append(*t, taint)
	return nil
}

// Amounts is "cpu=100m,memory=256Mi,ephemeral-storage=1Gi", read as the agent's own
// settings are. A value replaces the default whole.
type Amounts struct{ Of *cluster.Resources }

// Type is pflag.Value's.
func (a Amounts) Type() string { return "amounts" }

// String is pflag.Value's.
func (a Amounts) String() string {
	return fmt.Sprintf("cpu=%dm,memory=%s", a.Of.MilliCPU, resource.NewQuantity(a.Of.Memory, resource.BinarySI))
}

// Set is pflag.Value's.
func (a Amounts) Set(s string) error {
	if err := emptyElement(s); err != nil {
		return err
	}
	if name := nameOutside(s, "cpu", "memory", "ephemeral-storage"); name != "" {
		return fmt.Errorf("%s: only cpu, memory and ephemeral-storage can be reserved", name)
	}
	var amounts config.Amounts
	if err := amounts.Decode(s); err != nil {
		return err
	}
	*a.Of = cluster.Resources(amounts)
	return nil
}

// Eviction is "memory.available=100Mi,nodefs.available=10%"; the kubelet's own "<"
// is read too.
type Eviction struct{ Of *cluster.Reservation }

// Type is pflag.Value's.
func (e Eviction) Type() string { return "amounts" }

// String is pflag.Value's.
func (e Eviction) String() string {
	return fmt.Sprintf("memory.available=%s,nodefs.available=%d%%", resource.NewQuantity(e.Of.Eviction.Memory, resource.BinarySI), e.Of.EvictionStoragePercent)
}

// Set is pflag.Value's.
func (e Eviction) Set(s string) error {
	if err := emptyElement(s); err != nil {
		return err
	}
	if name := nameOutside(s, "memory.available", "nodefs.available"); name != "" {
		return fmt.Errorf("%s: only memory.available and nodefs.available can be set", name)
	}
	var t config.Thresholds
	if err := t.Decode(strings.ReplaceAll(s, "=", "<")); err != nil {
		return err
	}
	e.Of.Eviction, e.Of.EvictionStoragePercent = t.Amounts, t.StoragePercent
	return nil
}

// nameOutside is the first name of a list of NAME=AMOUNT that is not one of names.
func nameOutside(list string, names ...string) string {
	for _, part := range strings.Split(list, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, _, _ := strings.Cut(strings.ReplaceAll(part, "<", "="), "=")
		if !slices.Contains(names, name) {
			return name
		}
	}
	return ""
}
