package rules

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// FactsOut are the facts of a judgement as far as somebody can look them up.
type FactsOut struct {
	AskedNames     []string     `json:"askedNames,omitempty"`
	AskedAddresses []string     `json:"askedAddresses,omitempty"`
	Key            string       `json:"key,omitempty"`
	NodeUID        string       `json:"nodeUID,omitempty"`
	ProviderID     string       `json:"providerID,omitempty"`
	Instance       *InstanceOut `json:"instance,omitempty"`
	// Claimants are the live instances that may bear the Node's name.
	Claimants []cluster.InstanceID `json:"claimants,omitempty"`
	// SelfNames and SelfAddresses are this machine's own, where the Node is its.
	SelfNames     []string `json:"selfNames,omitempty"`
	SelfAddresses []string `json:"selfAddresses,omitempty"`
	Newer         string   `json:"newer,omitempty"`
	// Listed are the names and addresses that the operator's list of control-plane machines has for the Node.
	Listed []string `json:"listed,omitempty"`
	// Issued is the request by which the instance got its client certificate.
	Issued *Issue `json:"issued,omitempty"`
	// Bearers are the Nodes that carry the instance's provider ID, Rivals the other requests
	// for a name of it, with other keys.
	Bearers []string `json:"bearers,omitempty"`
	Rivals  []string `json:"rivals,omitempty"`
}

// InstanceOut is the witness.
type InstanceOut struct {
	ID        cluster.InstanceID `json:"id"`
	Group     cluster.GroupID    `json:"group"`
	Phase     cluster.Phase      `json:"phase"`
	Member    bool               `json:"member"`
	Launched  time.Time          `json:"launched,omitzero"`
	ReadAt    time.Time          `json:"readAt"`
	NodeNames []string           `json:"nodeNames,omitempty"`
	Names     []string           `json:"names,omitempty"`
	Addresses []string           `json:"addresses,omitempty"`
	Vouched   bool               `json:"vouchedByOperator,omitempty"`
}

// NewFactsOut picks them from what a request was judged by.
func NewFactsOut(req Request, f Facts) FactsOut {
	out := FactsOut{AskedNames: req.Parsed.DNS, Key: req.Parsed.Key, Newer: f.Newer}
	for _, a := range req.Parsed.IPs {
		out.AskedAddresses = append(out.AskedAddresses, a.String())
	}
	if f.Node != nil {
		out.NodeUID, out.ProviderID = f.Node.UID, f.Node.ProviderID
	}
	if f.own(req) {
		out.SelfNames = f.Self.Names
		for _, a := range f.Self.Addresses {
			out.SelfAddresses = append(out.SelfAddresses, a.String())
		}
	}
	if f.listed(req) {
		out.Listed = f.Listed.all()
	}
	if f.Join != nil {
		out.Issued, out.Bearers, out.Rivals = f.Join.Issued, f.Join.Bearers, f.Join.Rivals
	}
	if f.Inventory == nil {
		return out
	}
	out.Claimants = f.Inventory.Claimants
	if in := f.Inventory.Instance; in != nil {
		i := &InstanceOut{ID: in.ID, Group: f.Inventory.Group, Phase: in.Phase, Member: in.Member, Launched: in.Created,
			ReadAt: f.Inventory.ReadAt, NodeNames: in.NodeNames, Names: in.Names, Vouched: f.Inventory.Vouched}
		for _, a := range in.Addresses {
			i.Addresses = append(i.Addresses, a.String())
		}
		out.Instance = i
	}
	return out
}

// approval says who vouched for a request that passed every check.
func approval(req Request, f Facts) string {
	switch {
	case f.own(req):
		return "this machine itself has every name and address"
	case f.listed(req):
		return "the operator's list of control-plane machines (groups.yaml) has every name and address"
	case req.Signer == ClientSigner:
		return fmt.Sprintf("%s of group %s is expected as Node %s and has no certificate yet", f.Inventory.Instance.ID, f.Inventory.Group, req.Node())
	}
	vouches := fmt.Sprintf("%s of group %s vouches for every name and address", f.Inventory.Instance.ID, f.Inventory.Group)
	if f.Elder != nil {
		vouches += fmt.Sprintf("; Node %s has no provider ID and reports the %s, too: kubectl delete node %s if it is a leftover, else find out who registered it", f.Elder.Name, f.Elder.By, f.Elder.Name)
	}
	return vouches
}
