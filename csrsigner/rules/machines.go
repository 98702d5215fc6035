package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// ParseMachines reads the section "machines" of groups.yaml: a list of
//
//	instance:  the provider ID, as the Node carries it
//	node:      the name of its Node
//	names:     further DNS names
//	addresses: its IP addresses
//
// The error joins every mistake, each with its place below the section. An empty
// section says nothing.
func ParseMachines(section json.RawMessage) ([]Machine, error) { return parseMachines(section, false) }

// ParseControlPlane reads the section "controlPlane", which lists the machines of the control
// plane in the same form. A machine without a cloud has no instance; each has an address, and
// no name or address stands in two lines.
func ParseControlPlane(section json.RawMessage) ([]Machine, error) {
	list, err := parseMachines(section, true)
	if err != nil {
		return nil, err
	}
	var errs []error
	owner := map[string]int{}
	for n, m := range list {
		if len(m.Addresses) == 0 {
			errs = append(errs, fmt.Errorf("[%d].addresses: write the addresses of machine %s, by which its kubelet is reached", n, m.Node))
		}
		for _, what := range m.all() {
			if first, twice := owner[what]; twice && first != n {
				errs = append(errs, fmt.Errorf("[%d].%s: %s stands in [%d] already: a name or an address is of one machine", n, m.field(what), what, first))
			}
			owner[what] = n
		}
	}
	return list, errors.Join(errs...)
}

// all are the machine's names and addresses, canonical.
func (m Machine) all() []string {
	out := append([]string{m.Node}, m.Names...)
	for _, a := range m.Addresses {
		out = append(out, a.String())
	}
	return out
}

// field is the one that has a canonical name or address.
func (m Machine) field(what string) string {
	switch {
	case what == m.Node:
		return "node"
	case slices.Contains(m.Names, what):
		return "names"
	}
	return "addresses"
}

// Has tells whether a canonical name or address is the machine's.
func (m Machine) Has(what string) bool { return slices.Contains(m.all(), what) }

func parseMachines(section json.RawMessage, controlPlane bool) ([]Machine, error) {
	if len(bytes.TrimSpace(section)) == 0 {
		return nil, nil
	}
	var lines []struct {
		Instance  string   `json:"instance"`
		Node      string   `json:"node"`
		Names     []string `json:"names"`
		Addresses []string `json:"addresses"`
	}
	d := json.NewDecoder(bytes.NewReader(section))
	d.DisallowUnknownFields()
	if err := d.Decode(&lines); err != nil {
		return nil, machinesError(err)
	}
	var errs []error
	out := make([]Machine, 0, len(lines))
	seen := map[string]int{}
	for n, l := range lines {
		bad := func(field, format string, args ...any) {
			errs = append(errs, fmt.Errorf("[%d].%s: %s", n, field, fmt.Sprintf(format, args...)))
		}
		m := Machine{Instance: cluster.InstanceID(l.Instance), Node: CanonicalName(l.Node)}
		switch {
		case l.Instance == "" && !controlPlane:
			bad("instance", "write the provider ID of the machine")
		case controlPlane && l.Instance != "" && !strings.Contains(l.Instance, "://"):
			bad("instance", "%q is no provider ID of the form NAME://...: write it as the Node carries it, or leave it out where the Node has none", l.Instance)
		}
		if !IsSubdomain(m.Node) {
			bad("node", "%q is no name of a Node", l.Node)
		}
		for _, same := range []string{"instance " + l.Instance, "node " + m.Node} {
			if first, twice := seen[same]; twice && same != "instance " {
				field, _, _ := strings.Cut(same, " ")
				bad(field, "%s stands in [%d] already", same, first)
			}
			seen[same] = n
		}
		for k, name := range l.Names {
			if !IsSubdomain(CanonicalName(name)) {
				bad(fmt.Sprintf("names[%d]", k), "%q is no DNS name", name)
			}
			m.Names = append(m.Names, CanonicalName(name))
		}
		for k, text := range l.Addresses {
			a, err := machineAddress(text)
			if err != nil {
				bad(fmt.Sprintf("addresses[%d]", k), "%v", err)
				continue
			}
			m.Addresses = append(m.Addresses, a)
		}
		out = append(out, m)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// machineAddress refuses what is not of one machine: a certificate for a loopback address would be
// good for every machine.
func machineAddress(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil || a.Zone() != "":
		return a, fmt.Errorf("%q is no IP address", text)
	case !a.Unmap().IsGlobalUnicast():
		return a, fmt.Errorf("%s is no address of one machine, by which others reach it: write the one that its Node has", text)
	}
	return CanonicalAddress(a), nil
}

// machinesError says in the words of the file what the decoder says in Go's.
func machinesError(err error) error {
	const form = "write a list of machines, each {instance: ..., node: ..., names: [...], addresses: [...]}"
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Errorf("%s is a %s: %s", wrong.Field, wrong.Value, form)
	}
	if field, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return fmt.Errorf("there is no field %s: %s", field, form)
	}
	return errors.New(form)
}
