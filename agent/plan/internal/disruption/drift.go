package disruption

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/nodestart"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// wanted is what the present machines of a group have, as its nodes that have started show it.
type wanted struct {
	labels  map[string]time.Time // labels of the template: when the youngest node with it joined
	taints  []cluster.Taint      // of the template, those that stay
	tainted []time.Time          // the same of these
	kubelet map[int]time.Time    // the same by minor of the kubelet
}

// Differences are the properties in which a node is not what its group would start today. Of its source, each
// counts. Labels, taints and the kubelet's version are known of the source only by what it makes: they count where a younger
// node of the group has what the node lacks, so that a new machine will have it too.
func (r *Round) Differences(n *round.Node) []cluster.Difference {
	g, t := &r.groups[n.Group], &r.Groups[n.Group].Template
	if r.list(); g.wanted == nil {
		g.wanted = r.wantedOf(n.Group)
	}
	out := r.sourceDifferences(n)
	younger := func(at time.Time) bool { return at.After(n.Created) }
	var of []cluster.Difference
	for key, at := range g.wanted.labels {
		if is, has := n.Labels[key]; younger(at) && (!has || is != t.Labels[key]) {
			of = append(of, cluster.Difference{Property: "label " + key, Is: is, Wanted: t.Labels[key]})
		}
	}
	for k, x := range g.wanted.taints {
		if younger(g.wanted.tainted[k]) && !slices.Contains(n.Taints, x) {
			of = append(of, cluster.Difference{Property: "taint " + x.Key, Wanted: x.Value + ":" + x.Effect})
		}
	}
	if minor := minorOf(n.KubeletVersion); minor > 0 && minor < minorOf(r.Snapshot.ControlPlaneVersion) {
		for newer, at := range g.wanted.kubelet {
			if newer > minor && younger(at) {
				of = append(of, cluster.Difference{Property: "kubelet", Is: n.KubeletVersion, Wanted: r.Snapshot.ControlPlaneVersion})
				break
			}
		}
	}
	if len(of) == 0 {
		return out
	}
	slices.SortFunc(of, func(a, b cluster.Difference) int { return strings.Compare(a.Property, b.Property) })
	return append(slices.Clip(out), of...)
}

// sourceDifferences are those between the sources. Machines that were started from one source share its map, so that each is
// compared once a round.
func (r *Round) sourceDifferences(n *round.Node) []cluster.Difference {
	is, want := n.Instance.Source, r.Groups[n.Group].Template.Source
	if len(is) == 0 || len(want) == 0 {
		return nil
	}
	g, at := &r.groups[n.Group], reflect.ValueOf(is).Pointer()
	out, known := g.sources[at]
	if !known {
		out = is.Differences(want)
		round.Set(&g.sources, at, out)
	}
	return out
}

// fresh tells a node that was started from its group's present source, as far as both are told.
func (r *Round) fresh(n *round.Node) bool {
	return n.Instance != nil && len(n.Instance.Source) > 0 && len(r.Groups[n.Group].Template.Source) > 0 && len(r.sourceDifferences(n)) == 0
}

// wantedOf looks at the nodes of a group that have started. It costs them times the labels and taints of its template.
func (r *Round) wantedOf(g int) *wanted {
	t := &r.Groups[g].Template
	x := &wanted{labels: map[string]time.Time{}, kubelet: map[int]time.Time{}, taints: nodestart.Lasting(t.Taints, r.Policy)}
	x.tainted = make([]time.Time, len(x.taints))
	for _, i := range r.groups[g].members {
		n := &r.Nodes[i]
		if n.State != round.StateReady {
			continue
		}
		for key, value := range t.Labels {
			if n.Labels[key] == value && !ofPlace(key) {
				x.labels[key] = round.Later(x.labels[key], n.Created)
			}
		}
		for k := range x.taints {
			if slices.Contains(n.Taints, x.taints[k]) {
				x.tainted[k] = round.Later(x.tainted[k], n.Created)
			}
		}
		if minor := minorOf(n.KubeletVersion); minor > 0 {
			x.kubelet[minor] = round.Later(x.kubelet[minor], n.Created)
		}
	}
	return x
}

// ofPlace tells a label that says where a machine is, or of which type: machines of one source differ in it.
func ofPlace(key string) bool {
	return strings.HasPrefix(key, "topology.") || strings.HasPrefix(key, "failure-domain.") || key == "kubernetes.io/hostname" || strings.HasSuffix(key, "/instance-type")
}

// minorOf is the minor of a version such as v1.33.4; 0: it is not known.
func minorOf(version string) int {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 || parts[0] != "1" {
		return 0
	}
	minor, err := strconv.Atoi(strings.TrimRight(parts[1], "+"))
	if err != nil {
		return 0
	}
	return minor
}

// mostDifferences bounds the differences that a reason names.
const mostDifferences = 4

// differenceWords name differences with the old and the new value; empty: there is none.
func differenceWords(list []cluster.Difference) string {
	var out []string
	for i, d := range list {
		if i == mostDifferences {
			out = append(out, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		is := d.Is
		if is == "" {
			is = "none"
		}
		out = append(out, fmt.Sprintf("%s is %s and would be %s", d.Property, is, d.Wanted))
	}
	return strings.Join(out, "; ")
}
