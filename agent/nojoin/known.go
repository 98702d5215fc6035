package nojoin

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// Known is what the agent knows of an instance without asking its console.
type Known struct {
	At time.Time `json:"at"`
	// Group is the node group that has the instance; empty: none has.
	Group    cluster.GroupID    `json:"group,omitempty"`
	ID       cluster.InstanceID `json:"id,omitempty"`
	Provider string             `json:"provider,omitempty"`
	Phase    cluster.Phase      `json:"phase,omitempty"`
	Launched time.Time          `json:"launched,omitzero"`
	Names    []string           `json:"names,omitempty"`
	// Failure is the cloud's own word for an instance that it could not start.
	Failure string `json:"failure,omitempty"`
	// Nodes are those of this machine.
	Nodes []Node `json:"nodes,omitempty"`
	// Request is the newest verdict on a certificate request of this machine.
	Request *Request `json:"request,omitempty"`
	// Attestation is the last that the machine asked the attest listener; nil: nothing.
	Attestation *Attestation `json:"attestation,omitempty"`
	// GroupFailures are what the groups' clouds say of machines that they could not start.
	GroupFailures []GroupFailure `json:"groupFailures,omitempty"`
	// Ended is the decision by which this agent ended the machine; nil: none that it remembers.
	Ended *Ended `json:"ended,omitempty"`
	// Unread says what could not be read and why: what is missing here may be there.
	Unread string `json:"unread,omitempty"`
	// ProvisionTime is how long the machine may take to join.
	ProvisionTime time.Duration `json:"provisionTime,omitempty"`
}

// Node is a Node object of the machine.
type Node struct {
	Name string `json:"name"`
	// NameOnly tells that the Node has no provider ID, and the instance's name.
	NameOnly bool           `json:"nameOnly,omitempty"`
	Ready    cluster.Status `json:"ready,omitempty"`
	Since    time.Time      `json:"since,omitzero"`
}

// Request is a verdict on one certificate request.
type Request struct {
	Name string    `json:"name"`
	Node string    `json:"node"`
	Kind string    `json:"kind"` // "client certificate" or "serving certificate"
	Do   string    `json:"do"`   // leave, later, approve, deny
	Rule string    `json:"rule"`
	Why  string    `json:"why"`
	At   time.Time `json:"at,omitzero"`
}

// Attestation is an answer of the attest listener; without a rule the machine got its token.
type Attestation struct {
	Rule string    `json:"rule,omitempty"`
	Why  string    `json:"why,omitempty"`
	At   time.Time `json:"at"`
}

// Ended is a decision of this agent to end a machine.
type Ended struct {
	At   time.Time `json:"at"`
	Rule string    `json:"rule"`
	Why  string    `json:"why"`
}

// GroupFailure is what a cloud says of a group's machines.
type GroupFailure struct {
	Group cluster.GroupID `json:"group"`
	Text  string          `json:"text"`
	At    time.Time       `json:"at,omitzero"`
}

// KnownOf reads a Snapshot. id is a provider ID or the cloud's own ID. The number of steps grows
// with the instances and the Nodes.
func KnownOf(s *cluster.Snapshot, id string, provisionTime time.Duration) Known {
	k := Known{At: s.Now, ProvisionTime: provisionTime, Unread: s.Stale}
	for i := range s.Groups {
		if g := &s.Groups[i]; len(g.Failures) > 0 {
			k.GroupFailures = append(k.GroupFailures, GroupFailure{g.ID, g.Failures[0].Text, g.Failures[0].At})
		}
	}
	g, in := Find(s, id)
	if in == nil {
		for i := range s.Groups {
			k.Unread = cmp.Or(k.Unread, s.Groups[i].Stale)
		}
		return k
	}
	k.take(g, in)
	for _, n := range s.Nodes {
		if same, nameOnly := k.has(n); same {
			k.Nodes = append(k.Nodes, Node{string(n.Name), nameOnly, n.Ready, n.ReadySince})
		}
	}
	return k
}

// Find is the instance of a provider ID or of the cloud's own ID, with its group; nil: no group has it.
func Find(s *cluster.Snapshot, id string) (*cluster.NodeGroup, *cluster.Instance) {
	for i := range s.Groups {
		for n := range s.Groups[i].Instances {
			if in := &s.Groups[i].Instances[n]; isOf(in.ID, id) {
				return &s.Groups[i], in
			}
		}
	}
	return nil, nil
}

func (k *Known) take(g *cluster.NodeGroup, in *cluster.Instance) {
	k.Group, k.Provider, k.ID, k.Phase, k.Launched = g.ID, g.Provider, in.ID, in.Phase, in.Created
	k.Names = append(append([]string{}, in.NodeNames...), in.Names...)
	if in.Failure != nil {
		k.Failure = in.Failure.Text
	}
	if t := g.Options.MaxNodeProvisionTime; t != nil {
		k.ProvisionTime = *t
	}
}

// has tells whether a Node is of the instance: by its provider ID, else by system UUID or name.
func (k *Known) has(n *cluster.Node) (same, nameOnly bool) {
	if n.ProviderID != "" {
		return rules.SameMachine(n.ProviderID, string(k.ID)), false
	}
	if n.SystemUUID != "" && isOf(k.ID, strings.ToLower(n.SystemUUID)) {
		return true, false
	}
	named := slices.Contains(k.Names, string(n.Name))
	return named, named
}

// isOf tells whether id is an instance's provider ID, or the cloud's own ID at its end.
func isOf(instance cluster.InstanceID, id string) bool {
	whole := string(instance)
	return id != "" && (whole == id || strings.HasSuffix(whole, "/"+id))
}

// Asks tells whether a certificate request for a Node's name is one of the instance.
func (k *Known) Asks(node string) bool {
	return node != "" && (slices.Contains(k.Names, node) || slices.ContainsFunc(k.Nodes, func(n Node) bool { return n.Name == node }))
}
