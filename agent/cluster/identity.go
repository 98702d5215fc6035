package cluster

import (
	"encoding/hex"
	"slices"
	"strings"
)

// Identity says which instance backs which Node (DESIGN 4.1). It is built from
// evidence of falling strength: the provider ID as written, the provider ID's last
// segment in any written form, the system UUID, an address, a node name. Every
// strength is tried on all Nodes before the next, so that weak evidence never takes
// what strong evidence would have given.
type Identity struct {
	// Instance is the instance of a Node.
	Instance map[NodeName]InstanceID
	// Node is the Node of an instance.
	Node map[InstanceID]NodeName
	// Claimed are instances that some evidence ties to a Node which stronger evidence
	// gave to another instance (a reused address, a reused Node object). Such an
	// instance may back the Node: it is never treated as one without a Node.
	Claimed map[InstanceID]NodeName
}

// Identify matches instances to Nodes. Its result does not depend on the order of
// the slices.
func Identify(groups []NodeGroup, nodes []*Node) Identity {
	id := Identity{Instance: make(map[NodeName]InstanceID, len(nodes)), Node: make(map[InstanceID]NodeName, len(nodes))}
	var rest []*Node
	count := 0
	for g := range groups {
		count += len(groups[g].Instances)
	}
	exact, live := make(map[InstanceID]bool, count), make([]*Instance, 0, count)
	for g := range groups {
		for i := range groups[g].Instances {
			in := &groups[g].Instances[i]
			exact[in.ID] = true
			live = append(live, in)
		}
	}
	for _, n := range nodes {
		pid := InstanceID(n.ProviderID)
		if _, taken := id.Node[pid]; pid != "" && exact[pid] && (!taken || n.Name < id.Node[pid]) {
			if taken {
				delete(id.Instance, id.Node[pid])
			}
			id.Node[pid], id.Instance[n.Name] = n.Name, pid
		}
	}
	for _, n := range nodes {
		if _, done := id.Instance[n.Name]; !done {
			rest = append(rest, n)
		}
	}
	if len(rest) == 0 && len(id.Node) == len(live) {
		return id
	}
	slices.SortFunc(live, func(a, b *Instance) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.SortFunc(rest, func(a, b *Node) int { return strings.Compare(string(a.Name), string(b.Name)) })
	for _, ev := range evidence {
		id.match(live, rest, ev)
	}
	id.claim(live, nodes)
	return id
}

// evidenceOf is one kind of tie: the marks of an instance and of a Node; one mark
// in common is a tie. Weak evidence is not looked for on instances that are gone,
// whose addresses and names others may already wear.
type evidenceOf struct {
	name     string
	weak     bool
	instance func(*Instance) []string
	node     func(*Node) []string
}

var evidence = []evidenceOf{
	{"provider ID's last segment", false,
		func(i *Instance) []string { return mark(lastSegment(string(i.ID))) },
		func(n *Node) []string { return mark(lastSegment(n.ProviderID)) }},
	{"system UUID", false,
		func(i *Instance) []string { return mark(uuid(lastSegment(string(i.ID)))) },
		func(n *Node) []string { u := uuid(n.SystemUUID); return append(mark(u), mark(swapped(u))...) }},
	{"address", true,
		func(i *Instance) []string {
			out := make([]string, 0, len(i.Addresses))
			for _, a := range i.Addresses {
				out = append(out, a.String())
			}
			return out
		},
		func(n *Node) []string { return n.Addresses }},
	{"name", true,
		func(i *Instance) []string { return i.NodeNames },
		func(n *Node) []string { return []string{string(n.Name)} }},
}

func (id *Identity) match(live []*Instance, rest []*Node, ev evidenceOf) {
	by := make(map[string]*Instance)
	for _, in := range live {
		if _, taken := id.Node[in.ID]; taken || ev.weak && in.Phase == PhaseGone {
			continue
		}
		for _, m := range ev.instance(in) {
			if _, twice := by[m]; !twice {
				by[m] = in
			}
		}
	}
	for _, n := range rest {
		if _, done := id.Instance[n.Name]; done {
			continue
		}
		for _, m := range ev.node(n) {
			in := by[m]
			if in == nil {
				continue
			}
			if _, taken := id.Node[in.ID]; !taken {
				id.Node[in.ID], id.Instance[n.Name] = n.Name, in.ID
				break
			}
		}
	}
}

// claim finds the instances left without a Node that any evidence ties to one.
func (id *Identity) claim(live []*Instance, nodes []*Node) {
	for _, ev := range evidence {
		by := make(map[string]NodeName)
		for _, n := range nodes {
			for _, m := range ev.node(n) {
				if old, ok := by[m]; !ok || n.Name < old {
					by[m] = n.Name
				}
			}
		}
		for _, in := range live {
			if _, taken := id.Node[in.ID]; taken || in.Phase == PhaseGone {
				continue
			}
			for _, m := range ev.instance(in) {
				if n, ok := by[m]; ok && id.Claimed[in.ID] == "" {
					if id.Claimed == nil {
						id.Claimed = make(map[InstanceID]NodeName)
					}
					id.Claimed[in.ID] = n
				}
			}
		}
	}
}

func mark(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// lastSegment returns what follows the last slash of a provider ID in lower case,
// a UUID in its 32 digits: "openstack:///UUID", "openstack://region/uuid" and
// "openstack://uuid" are one machine, and so are "aws:///zone/i-1" and "i-1".
func lastSegment(id string) string {
	s := strings.ToLower(id[strings.LastIndexByte(id, '/')+1:])
	if u := uuid(s); u != "" {
		return u
	}
	return s
}

// uuid returns the 32 lower-case digits of a UUID in any written form, "" for
// anything else.
func uuid(s string) string {
	s = strings.ToLower(strings.ReplaceAll(strings.Trim(s, "{} "), "-", ""))
	if len(s) != 32 {
		return ""
	}
	if _, err := hex.DecodeString(s); err != nil {
		return ""
	}
	return s
}

// swapped returns a UUID with its first three fields in the other byte order, as
// firmware older than SMBIOS 2.6 reports it.
func swapped(u string) string {
	if u == "" {
		return ""
	}
	b, err := hex.DecodeString(u)
	if err != nil {
		return ""
	}
	slices.Reverse(b[0:4])
	slices.Reverse(b[4:6])
	slices.Reverse(b[6:8])
	return hex.EncodeToString(b)
}
