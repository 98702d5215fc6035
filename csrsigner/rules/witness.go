package rules

import (
	"fmt"
	"strings"
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
	case !strings.Contains(id, "://"):
		// What a provider calls a machine that has no provider ID yet binds no Node to it:
		// any kubelet may register under it.
		return Later, fmt.Sprintf("provider ID %q of Node %s is none: it has the form NAME://...", id, f.Node.Name)
	case inv.Instance == nil && inv.Incomplete != "":
		return Later, fmt.Sprintf("instance %s is not among those that could be read: %s", id, inv.Incomplete)
	case inv.Instance == nil:
		return Later, fmt.Sprintf("instance %s is in no managed node group", id)
	case !SameMachine(id, string(inv.Instance.ID)):
		return Later, fmt.Sprintf("instance %s is not %s", inv.Instance.ID, id)
	case !inv.Instance.Member:
		return Later, fmt.Sprintf("instance %s is not a member of group %s now", id, inv.Group)
	case !runs(*inv.Instance):
		return Later, fmt.Sprintf("instance %s is not running (%q)", id, inv.Instance.Phase)
	case !ownsName(inv.Instance.NodeNames, req.Node()):
		return Later, fmt.Sprintf("a Node of instance %s may not be called %s (but %q): a domain that the cloud does not tell goes into AUTOSCALER_CSR_EXTRA_NAMES={{node}}.DOMAIN",
			id, req.Node(), inv.Instance.NodeNames)
	}
	return Later, ""
}

func oneInstance(req Request, f Facts) (Action, string) {
	own := f.Inventory.Instance
	if own.Created.IsZero() && f.Inventory.Vouched {
		return Later, claimed(req, f) // the cloud has no launch times; the operator's list names the machine
	}
	if own.Created.IsZero() || TooEarly(req.Created, own.Created) {
		return Later, fmt.Sprintf("instance %s was launched (%s) after the request was made (%s)", own.ID, stamp(own.Created), stamp(req.Created))
	}
	return Later, claimed(req, f)
}

// noElder holds the younger of two Nodes that are one instance: a kubelet registers one Node, so that one of
// them is somebody else's. The older one was there first and goes on; a Node whose kubelet is dead
// (its machine was renamed) holds nobody, and neither does one that reports another machine's address or system UUID
// (k0sproject/k0s#8333): for these the cloud is asked (R11, R14), and the approval names it.
func noElder(req Request, f Facts) (Action, string) {
	if f.Elder == nil || !f.Elder.Instance {
		return Later, ""
	}
	return Later, fmt.Sprintf("Node %s is older, its kubelet lives, and it has the same %s: one machine is one Node. If %s is a leftover, kubectl delete node %s; else find out who registered %s",
		f.Elder.Name, f.Elder.By, f.Elder.Name, f.Elder.Name, req.Node())
}

// TooEarly tells that a request was made before the launch. The API server and EC2 keep
// whole seconds, and a machine that starts needs several before it can ask: a request of
// the launch's own second is the earliest that passes, and clocks get no allowance. What
// was posted beforehand for a name that comes is nobody's.
func TooEarly(asked, launched time.Time) bool {
	return asked.Truncate(time.Second).Before(launched.Truncate(time.Second))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// claimed names another live instance whose Node may bear the same name.
func claimed(req Request, f Facts) string {
	for _, id := range f.Inventory.Claimants {
		if id != f.Inventory.Instance.ID {
			return fmt.Sprintf("instance %s may carry the Node name %s as well", id, req.Node())
		}
	}
	return ""
}

// runs tells that the machine itself runs, also where its group lets it wait on the way
// out or stand by: its pods are being drained and its logs are read.
func runs(i cluster.Instance) bool {
	switch i.Phase {
	case cluster.PhaseRunning, cluster.PhasePending:
		return true
	case cluster.PhaseStopped, cluster.PhaseDeleting:
		return i.Runs
	}
	return false
}

// alive tells whether an instance can still hold its names and addresses.
func alive(i cluster.Instance) bool {
	return i.Phase != cluster.PhaseGone && i.Phase != cluster.PhaseFailed
}
