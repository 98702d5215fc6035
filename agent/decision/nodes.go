package decision

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// The states of a machine in a list of nodes.
const (
	NodeUpcoming = "upcoming"  // the cloud has the machine, and it has no Node yet
	NodeStarting = "starting"  // it has a Node, which is not yet what its group's nodes are
	NodeReady    = "ready"     // the scheduler may place pods now
	NodeCordoned = "cordoned"  // Ready, and somebody has cordoned it
	NodeDraining = "draining"  // the agent drains it
	NodeEnding   = "ending"    // its machine ends, or its Node object is being deleted
	NodeNotReady = "not ready" // its kubelet does not answer, or says so itself
	NodeFailed   = "failed"    // the cloud could not start the machine
)

// NodeRow is one machine in a list of nodes.
type NodeRow struct {
	Group    cluster.GroupID    `json:"group,omitempty"` // empty: no node group of the agent's has it
	Node     cluster.NodeName   `json:"node,omitempty"`  // empty: it has no Node yet
	Instance cluster.InstanceID `json:"instance,omitempty"`
	State    string             `json:"state"`
	Created  time.Time          `json:"created,omitzero"` // of the machine; of the Node where the cloud does not tell it
	Kubelet  string             `json:"kubelet,omitempty"`
	// MinorsBehind is how many minor versions the kubelet is older than the API server.
	MinorsBehind int `json:"minorsBehind,omitempty"`
	// Drift is in what the machine differs from what its group would start today.
	Drift []cluster.Difference `json:"drift,omitempty"`
	// Rule and Held are the first reason for which the last round left it as it is.
	Rule string `json:"rule,omitempty"`
	Held string `json:"held,omitempty"`
}

// Nodes is a list of nodes at a moment.
type Nodes struct {
	At           time.Time `json:"at"`
	ControlPlane string    `json:"controlPlane,omitempty"` // the version of the API server
	Nodes        []NodeRow `json:"nodes"`
}
