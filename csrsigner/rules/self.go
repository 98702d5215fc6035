package rules

import (
	"fmt"
	"slices"
	"strings"
)

// This file holds the checks of control-plane Nodes. It is as pure as decide.go.

// RuleListed judges the Nodes of other control-plane machines by the operator's list.
const RuleListed = "R21"

// own tells whether the request is of the Node that the agent itself runs on.
func (f Facts) own(req Request) bool { return f.Self != nil && f.Self.Node == req.Node() }

// listed tells whether the request is of another control-plane machine that the operator lists.
func (f Facts) listed(req Request) bool {
	return !f.own(req) && f.controlPlaneAsks(req) && f.Listed != nil && f.Listed.Node == req.Node()
}

// controlPlaneAsks tells whether the Node that asks is of the control plane, by the label that no
// kubelet can give itself.
func (f Facts) controlPlaneAsks(req Request) bool {
	return req.Signer == ServingSigner && f.Node != nil && f.Node.ControlPlane && f.Node.Name == req.Node()
}

func (f Facts) scopeOf(req Request) scope {
	switch {
	case f.own(req):
		return leaderOnly
	case f.listed(req):
		return listedOnly
	}
	return workersOnly
}

func notControlPlane(req Request, f Facts) (Action, string) {
	if f.Node.ControlPlane {
		return Later, fmt.Sprintf("Node %s is of the control plane, no node group vouches for it: list it in the section controlPlane of groups.yaml (docs/ha.md), or check the request and run kubectl certificate approve %s", f.Node.Name, req.Name)
	}
	return Later, ""
}

// ownMachine binds the agent's own Node to the machine it runs on. The label is the
// part that a kubelet cannot give itself (NodeRestriction): without it anybody who
// joined under the agent's host name would be taken for the leader.
func ownMachine(_ Request, f Facts) (Action, string) {
	switch self := f.Self; {
	case !f.Node.ControlPlane:
		return Later, fmt.Sprintf("Node %s bears this machine's name and is not labelled node-role.kubernetes.io/control-plane: set AUTOSCALER_NODE_NAME to this machine's own Node", f.Node.Name)
	case self.Problem != "":
		return Later, "this machine's own names and addresses cannot be read: " + self.Problem
	case self.MachineID != "" && f.Node.MachineID != "" && self.MachineID != f.Node.MachineID:
		return Later, fmt.Sprintf("Node %s has another machine ID than this machine: set AUTOSCALER_NODE_NAME to this machine's own Node", f.Node.Name)
	}
	return Later, ""
}

// ownNames is the self-witness: what no cloud's group vouches for, the machine's own
// interfaces and host names do.
func ownNames(req Request, f Facts) (Action, string) {
	for _, raw := range req.Parsed.DNS {
		if !ownsName(f.Self.Names, CanonicalName(raw)) {
			return Later, fmt.Sprintf("name %q is none of this machine's host names (%s): add it to AUTOSCALER_CSR_SELF_NAMES if it should be", raw, strings.Join(f.Self.Names, ", "))
		}
	}
	for _, raw := range req.Parsed.IPs {
		if !slices.Contains(f.Self.Addresses, CanonicalAddress(raw)) {
			return Later, fmt.Sprintf("address %s is on none of this machine's interfaces: add it to AUTOSCALER_CSR_SELF_NAMES if it should be", raw)
		}
	}
	return Later, ""
}

// listedMachine binds the Node of another control-plane machine to its line of the operator's list.
func listedMachine(_ Request, f Facts) (Action, string) {
	switch id := string(f.Listed.Instance); {
	case id == "" || SameMachine(id, f.Node.ProviderID):
		return Later, ""
	case f.Node.ProviderID == "":
		return Later, fmt.Sprintf("Node %s has no provider ID, and the list of control-plane machines says %s: leave instance out of its line in groups.yaml, or set --provider-id in the kubelet's arguments", f.Node.Name, id)
	default:
		return Later, fmt.Sprintf("Node %s is instance %s, and the list of control-plane machines says %s: correct the line in groups.yaml if the machine was replaced", f.Node.Name, f.Node.ProviderID, id)
	}
}

// listedNames passes a request whose names and addresses all stand in the Node's own line of the list. It denies a name of
// another Node, and holds a name or an address that the line lacks, because an operator may add it.
func listedNames(req Request, f Facts) (Action, string) {
	for _, raw := range req.Parsed.DNS {
		name := CanonicalName(raw)
		if node := f.Taken[name]; node != "" {
			return Deny, fmt.Sprintf("name %q is the name of Node %s", raw, node)
		}
		if !f.Listed.Has(name) {
			return Later, fmt.Sprintf("name %q is not in the line of Node %s in the section controlPlane of groups.yaml (%s): add it if it should be", raw, f.Node.Name, strings.Join(f.Listed.Names, ", "))
		}
	}
	for _, raw := range req.Parsed.IPs {
		if !f.Listed.Has(CanonicalAddress(raw).String()) {
			return Later, fmt.Sprintf("address %s is not in the line of Node %s in the section controlPlane of groups.yaml (%v): add it if it should be", raw, f.Node.Name, f.Listed.Addresses)
		}
	}
	return Later, ""
}
