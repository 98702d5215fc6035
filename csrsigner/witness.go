package csrsigner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds the checks that bind the Node to one instance of a managed group.
// It is as pure as decide.go.

func freshInventory(_ Request, f Facts) (Action, string) {
	inv := f.Inventory
	switch {
	case inv == nil:
		return Later, "the inventory has not been read yet"
	case inv.Problem != "":
		return Later, "the inventory cannot be read: " + inv.Problem
	case inv.Instance == nil:
		return Later, "" // R11 names it
	case inv.Stale != "":
		return Later, fmt.Sprintf("what is known of group %s is old: %s", inv.Group, inv.Stale)
	case f.Now.Sub(inv.ReadAt) > f.MaxAge:
		return Later, fmt.Sprintf("the inventory of group %s is %s old, more than %s", inv.Group, f.Now.Sub(inv.ReadAt).Round(time.Second), f.MaxAge)
	}
	return Later, ""
}

func witnessedInstance(req Request, f Facts) (Action, string) {
	inv, id := f.Inventory, f.Node.ProviderID
	switch {
	case id == "":
		return Later, fmt.Sprintf("Node %s has no provider ID: set --provider-id in the kubelet's arguments", f.Node.Name)
	case inv.Instance == nil && inv.Incomplete != "":
		return Later, fmt.Sprintf("instance %s is not among those that could be read: %s", id, inv.Incomplete)
	case inv.Instance == nil:
		return Later, fmt.Sprintf("instance %s is in no managed node group", id)
	case string(inv.Instance.ID) != id:
		return Later, fmt.Sprintf("instance %s is not %s", inv.Instance.ID, id)
	case !inv.Instance.Member:
		return Later, fmt.Sprintf("instance %s is not a member of group %s now", id, inv.Group)
	case inv.Instance.Phase != cluster.PhaseRunning && inv.Instance.Phase != cluster.PhasePending:
		return Later, fmt.Sprintf("instance %s is not running (%q)", id, inv.Instance.Phase)
	case !ownsName(inv.Instance.NodeNames, req.Node()):
		return Later, fmt.Sprintf("a Node of instance %s may not be called %s (but %q)", id, req.Node(), inv.Instance.NodeNames)
	}
	return Later, ""
}

func oneInstance(req Request, f Facts) (Action, string) {
	own := f.Inventory.Instance
	if own.Created.IsZero() || own.Created.After(req.Created.Add(launchSkew)) {
		return Later, fmt.Sprintf("instance %s was launched (%s) after the request was made (%s)", own.ID,
			own.Created.UTC().Format("2006-01-02T15:04:05Z"), req.Created.UTC().Format("2006-01-02T15:04:05Z"))
	}
	for _, id := range f.Inventory.Claimants {
		if id != own.ID {
			return Later, fmt.Sprintf("instance %s may carry the Node name %s as well", id, req.Node())
		}
	}
	return Later, ""
}

// alive tells whether an instance can still hold its names and addresses.
func alive(i cluster.Instance) bool {
	return i.Phase != cluster.PhaseGone && i.Phase != cluster.PhaseFailed
}

// WitnessOf picks from the inventory what one request needs. asked are the names and
// addresses of the request.
func WitnessOf(groups []cluster.NodeGroup, providerID, node string, asked Parsed) *Witness {
	inv := &Witness{Owners: map[string]cluster.InstanceID{}}
	wanted := make(map[string]bool, len(asked.DNS)+len(asked.IPs))
	for _, n := range asked.DNS {
		wanted[canonical(n)] = true
	}
	for _, a := range asked.IPs {
		wanted[plain(a).String()] = true
	}
	// The order in which a provider lists its groups means nothing.
	sorted := slices.Clone(groups)
	slices.SortFunc(sorted, func(a, b cluster.NodeGroup) int { return cmp.Compare(a.ID, b.ID) })
	for g := range sorted {
		group := &sorted[g]
		if group.Stale != "" {
			inv.Incomplete = joinWords(inv.Incomplete, fmt.Sprintf("group %s: %s", group.ID, group.Stale))
		}
		for i := range group.Instances {
			inv.take(group, group.Instances[i], providerID, node, wanted)
		}
	}
	slices.Sort(inv.Claimants)
	return inv
}

func (inv *Witness) take(group *cluster.NodeGroup, i cluster.Instance, providerID, node string, wanted map[string]bool) {
	if string(i.ID) == providerID {
		// An instance that two groups list is taken from the one it is a member of.
		if inv.Instance == nil || !inv.Instance.Member {
			inv.Instance, inv.Group, inv.Stale, inv.ReadAt = &i, group.ID, group.Stale, group.ReadAt
		}
	}
	if !alive(i) {
		return
	}
	if ownsName(i.NodeNames, node) {
		inv.Claimants = append(inv.Claimants, i.ID)
	}
	if string(i.ID) == providerID {
		return
	}
	for _, names := range [][]string{i.NodeNames, i.Names} {
		for _, n := range names {
			if c := canonical(n); wanted[c] {
				inv.owned(c, i.ID)
			}
		}
	}
	for _, a := range i.Addresses {
		if s := plain(a).String(); wanted[s] {
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

func joinWords(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
