package rules

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file builds the witness of one request from the cloud's inventory and from what
// the operator adds to it. It is as pure as decide.go.

// Machine is one line of the operator's own inventory: the witness for a machine whose
// cloud cannot tell its names and addresses (section "machines" of groups.yaml).
type Machine struct {
	// Instance is the provider ID, as the Node carries it.
	Instance cluster.InstanceID
	// Node is the name that its Node bears; Names are further DNS names.
	Node      string
	Names     []string
	Addresses []netip.Addr
}

// Sources are who vouches for names and addresses beside the cloud itself.
type Sources struct {
	// Extra are templates of names that every machine has ({{node}}.corp.example).
	Extra []string
	// Machines are the operator's own inventory.
	Machines []Machine
}

// Witness picks from the inventory and s what one serving request needs: the instance
// behind providerID, and who else has what is asked for.
func (s Sources) Witness(groups []cluster.NodeGroup, providerID, node string, asked Parsed) *Witness {
	w := s.newSearch(node, func(id cluster.InstanceID) bool { return SameMachine(providerID, string(id)) })
	for _, n := range asked.DNS {
		w.wanted[CanonicalName(n)] = true
	}
	for _, a := range asked.IPs {
		w.wanted[CanonicalAddress(a).String()] = true
	}
	w.all(groups)
	return w.found
}

// JoinWitness picks from the inventory and s what one client request needs: the one
// instance that is expected under the node's name.
func (s Sources) JoinWitness(groups []cluster.NodeGroup, node string) *Witness {
	w := s.newSearch(node, func(cluster.InstanceID) bool { return false })
	w.all(groups)
	if len(w.found.Claimants) != 1 {
		return w.found
	}
	only := w.found.Claimants[0]
	w = s.newSearch(node, func(id cluster.InstanceID) bool { return id == only })
	w.all(groups)
	return w.found
}

// search goes through the inventory once.
type search struct {
	Sources
	node   string
	mine   func(cluster.InstanceID) bool
	wanted map[string]bool
	found  *Witness
}

func (s Sources) newSearch(node string, mine func(cluster.InstanceID) bool) *search {
	return &search{Sources: s, node: node, mine: mine, wanted: map[string]bool{}, found: &Witness{Owners: map[string]cluster.InstanceID{}}}
}

func (w *search) all(groups []cluster.NodeGroup) {
	// The order in which a provider lists its groups means nothing.
	sorted := slices.Clone(groups)
	slices.SortFunc(sorted, func(a, b cluster.NodeGroup) int { return cmp.Compare(a.ID, b.ID) })
	for g := range sorted {
		group := &sorted[g]
		if group.Stale != "" {
			w.found.Incomplete = joinWords(w.found.Incomplete, fmt.Sprintf("group %s: %s", group.ID, group.Stale))
		}
		for i := range group.Instances {
			w.take(group, group.Instances[i])
		}
	}
	slices.Sort(w.found.Claimants)
	w.found.Claimants = slices.Compact(w.found.Claimants)
}

func (w *search) take(group *cluster.NodeGroup, i cluster.Instance) {
	inv, vouched := w.found, w.lay(&i)
	mine := w.mine(i.ID)
	if mine {
		// An instance that two groups list is taken from the one it is a member of.
		if inv.Instance == nil || !inv.Instance.Member {
			inv.Instance, inv.Group, inv.Stale, inv.ReadAt, inv.Vouched = &i, group.ID, group.Stale, group.WitnessedAt(), vouched
		}
	}
	if !alive(i) {
		return
	}
	if ownsName(i.NodeNames, w.node) {
		inv.Claimants = append(inv.Claimants, i.ID)
	}
	if mine || len(w.wanted) == 0 {
		return
	}
	for _, names := range [][]string{i.NodeNames, i.Names} {
		for _, n := range names {
			if c := CanonicalName(n); w.wanted[c] {
				inv.owned(c, i.ID)
			}
		}
	}
	for _, a := range i.Addresses {
		if s := CanonicalAddress(a).String(); w.wanted[s] {
			inv.owned(s, i.ID)
		}
	}
}

// owned keeps the smallest ID, so that the order of the inventory means nothing.
func (inv *Witness) owned(what string, id cluster.InstanceID) {
	if old, ok := inv.Owners[what]; !ok || id < old {
		inv.Owners[what] = id
	}
}

// lay adds to an instance what the operator says about it, and tells whether the
// operator's inventory names it. Shared slices are replaced, not changed.
func (w *search) lay(i *cluster.Instance) (vouched bool) {
	for _, m := range w.Machines {
		if !SameMachine(string(m.Instance), string(i.ID)) {
			continue
		}
		vouched = true
		i.NodeNames = append(slices.Clip(i.NodeNames), m.Node)
		i.Names = append(slices.Clip(i.Names), append([]string{m.Node}, m.Names...)...)
		i.Addresses = append(slices.Clip(i.Addresses), m.Addresses...)
	}
	if len(w.Extra) == 0 {
		return vouched
	}
	var extra []string
	for _, template := range w.Extra {
		for _, node := range i.NodeNames {
			if name, ok := expand(template, CanonicalName(node), *i); ok {
				extra = append(extra, name)
			}
		}
	}
	// A Node may bear such a name, too: in a domain that the cloud does not tell (Nova's
	// dhcp_domain) it is the machine's host name.
	i.NodeNames, i.Names = append(slices.Clip(i.NodeNames), extra...), append(slices.Clip(i.Names), extra...)
	return vouched
}

// placeholders are what a template of names may hold.
var placeholders = []string{"{{node}}", "{{instance}}", "{{zone}}", "{{region}}"}

// expand fills a template in; false: the instance lacks a value that it asks for.
func expand(template, node string, i cluster.Instance) (string, bool) {
	values := []string{node, lastSegment(string(i.ID)), i.Zone, regionOf(i)}
	for n, p := range placeholders {
		if strings.Contains(template, p) && values[n] == "" {
			return "", false
		}
		template = strings.ReplaceAll(template, p, values[n])
	}
	return CanonicalName(template), true
}

// TemplateFault says what is wrong with a template; empty: nothing.
func TemplateFault(template string) string {
	plain := template
	for _, p := range placeholders {
		plain = strings.ReplaceAll(plain, p, "x")
	}
	switch {
	case strings.ContainsAny(plain, "{}"):
		return "only " + strings.Join(placeholders, ", ") + " stand for something"
	case !strings.Contains(template, "{{node}}") && !strings.Contains(template, "{{instance}}"):
		return "machines would share the name: write {{node}} or {{instance}} into it"
	case !IsSubdomain(CanonicalName(plain)):
		return "it does not make a DNS name"
	}
	return ""
}

var awsRegion = regexp.MustCompile(`\A[a-z]{2}(-[a-z]+)+-[0-9]+`)

// regionOf reads the region from a provider ID that has one (openstack://REGION/UUID),
// else from the name of an AWS zone.
func regionOf(i cluster.Instance) string {
	scheme, rest, _ := strings.Cut(string(i.ID), "://")
	if region, _, ok := strings.Cut(rest, "/"); ok && scheme == "openstack" {
		return region
	}
	if scheme == "aws" {
		return awsRegion.FindString(i.Zone)
	}
	return ""
}

func lastSegment(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

// SameMachine compares provider IDs. OpenStack's is written with and without a region
// ("openstack:///UUID", "openstack://REGION/UUID"); two regions are never one.
func SameMachine(a, b string) bool {
	if a == b {
		return a != ""
	}
	schemeA, restA, okA := strings.Cut(a, "://")
	schemeB, restB, okB := strings.Cut(b, "://")
	if !okA || !okB || schemeA != schemeB || schemeA != "openstack" {
		return false
	}
	regionA, idA, okA := strings.Cut(restA, "/")
	regionB, idB, okB := strings.Cut(restB, "/")
	return okA && okB && strings.EqualFold(idA, idB) && isUUID(idA) && (regionA == "" || regionB == "")
}

// MachineKey is the same for all provider IDs that are SameMachine, as an index needs it;
// OpenStack's IDs of two regions have one key, too.
func MachineKey(id string) string {
	scheme, rest, _ := strings.Cut(id, "://")
	if _, uuid, ok := strings.Cut(rest, "/"); ok && scheme == "openstack" && isUUID(uuid) {
		return "openstack:///" + strings.ToLower(uuid)
	}
	return id
}

func isUUID(s string) bool {
	digits := strings.ReplaceAll(s, "-", "")
	_, err := hex.DecodeString(digits)
	return len(s) == 36 && len(digits) == 32 && err == nil
}

func joinWords(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
