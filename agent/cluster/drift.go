package cluster

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SettledAfter is how long a Node is Ready before it shows what the group's next Node becomes:
// startup taints are gone by then, and labels that come late are there.
const SettledAfter = 10 * time.Minute

// Expected are the labels and taints that a template's Nodes register with, as properties: they
// stand in tags or in groups.yaml. Labels of Kubernetes' own domains are left out: no kubelet may
// set them (NodeRestriction), but for those that tell where a machine is and of which type.
func Expected(labels map[string]string, taints []Taint) Spec {
	out := Spec{}
	for key, value := range labels {
		domain, _, _ := strings.Cut(key, "/")
		if !within(domain, "kubernetes.io") && !within(domain, "k8s.io") {
			out["label "+key] = value
		}
	}
	for _, t := range taints {
		out["taint "+t.Key+":"+t.Effect] = t.Value
	}
	return out
}

func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

// Drifted counts the members of a group that differ from what it would start today, as far as the
// cloud alone tells, and how often each property does. Members of one origin share their source, which is compared once.
func (g *NodeGroup) Drifted() (members int, by map[string]int) {
	by = map[string]int{}
	compared := map[uintptr][]Difference{}
	for i := range g.Instances {
		if !g.Instances[i].Member {
			continue
		}
		at := reflect.ValueOf(g.Instances[i].Source).Pointer()
		list, is := compared[at]
		if !is {
			list = g.Instances[i].Source.Differences(g.Template.Source)
			compared[at] = list
		}
		if len(list) > 0 {
			members++
		}
		for _, d := range list {
			by[d.Property]++
		}
	}
	return members, by
}

// expectation is one property of Expected.
type expectation struct {
	name, label, value string
	taint              Taint // where it is no label
}

func expectations(s Spec) []expectation {
	out := make([]expectation, 0, len(s))
	for name, value := range s {
		p := expectation{name: name, value: value}
		if key, ok := strings.CutPrefix(name, "label "); ok {
			p.label = key
		} else {
			key, effect := cutLast(strings.TrimPrefix(name, "taint "))
			p.taint = Taint{key, value, effect}
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b expectation) int { return strings.Compare(a.name, b.name) })
	return out
}

// cutLast cuts at the last colon.
func cutLast(s string) (before, after string) {
	at := max(strings.LastIndexByte(s, ':'), 0)
	return s[:at], strings.TrimPrefix(s[at:], ":")
}

// shown is what a Node has where a label or a taint is expected.
func (p *expectation) shown(n *Node) (value string, kept bool) {
	if p.label != "" {
		value, has := n.Labels[p.label]
		if !has {
			value = Unset
		}
		return value, has && value == p.value
	}
	for _, t := range n.Taints {
		if t.Key == p.taint.Key && t.Effect == p.taint.Effect {
			return t.Value, t.Value == p.value
		}
	}
	return Unset, false
}

// Drift tells in what the members of a group differ from what the group would start today, by
// instance; an instance that differs in nothing, or of which it is not known, has no entry. node
// is the Node of an instance, or nil. controlPlane is the version of the API server.
//
// What the cloud tells counts by itself. A label, a taint or the minor version of the kubelet
// counts only where the newest settled Node of the current source has it: a tag that no user data
// follows, or a version that no image has, would otherwise replace machines for ever. A replacement
// becomes the newest, so that one that does not bring it is the last.
//
// It costs two looks at each property of each instance, and allocates for those that differ.
func Drift(g *NodeGroup, node func(InstanceID) *Node, controlPlane string, now time.Time) map[InstanceID][]Difference {
	if g.TemplateStale != "" || g.Template.Unknown != "" || g.Template.Source == nil {
		return nil
	}
	out := map[InstanceID][]Difference{}
	var newest *Node
	var last *Instance
	for i := range g.Instances {
		in := &g.Instances[i]
		if !in.Member || in.Source == nil {
			continue
		}
		if diff := in.Source.Differences(g.Template.Source); len(diff) > 0 {
			out[in.ID] = diff
		} else if n := node(in.ID); n.settled(now) && (last == nil || last.Created.Before(in.Created)) {
			newest, last = n, in
		}
	}
	if newest == nil {
		return out
	}
	expected := slices.DeleteFunc(expectations(g.Template.Expected), func(e expectation) bool {
		_, kept := e.shown(newest)
		return !kept
	})
	kubelet := newest.KubeletVersion
	if MinorsBehind(controlPlane, kubelet) > 0 || controlPlane == "" {
		kubelet = "" // newer than the API server, or nobody knows
	}
	for i := range g.Instances {
		in := &g.Instances[i]
		if n := node(in.ID); in.Member && in.Source != nil && n.settled(now) {
			if diff := n.behind(expected, kubelet); len(diff) > 0 {
				out[in.ID] = append(out[in.ID], diff...)
			}
		}
	}
	return out
}

// settled tells that a Node has become what it will be.
func (n *Node) settled(now time.Time) bool {
	return n != nil && n.Ready == StatusTrue && now.Sub(n.ReadySince) >= SettledAfter
}

// behind is in what a Node differs from labels, taints and a version of the kubelet.
func (n *Node) behind(expected []expectation, kubelet string) []Difference {
	var out []Difference
	for i := range expected {
		if value, kept := expected[i].shown(n); !kept {
			out = append(out, Difference{expected[i].name, value, expected[i].value})
		}
	}
	if MinorsBehind(n.KubeletVersion, kubelet) > 0 {
		out = append(out, Difference{PropertyKubelet, n.KubeletVersion, kubelet})
	}
	return out
}

// String is "image: ami-1, wanted ami-2".
func (d Difference) String() string { return d.Property + ": " + d.Is + ", wanted " + d.Wanted }

// FirstOf is the first difference and how many more there are, "image: ami-1, wanted ami-2; and 3
// more"; empty: there is none.
func FirstOf(list []Difference) string {
	switch len(list) {
	case 0:
		return ""
	case 1:
		return list[0].String()
	}
	return list[0].String() + "; and " + strconv.Itoa(len(list)-1) + " more"
}
