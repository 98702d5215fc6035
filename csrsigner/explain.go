package csrsigner

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Explanation is what `explain csr NAME` prints: the judgement of one request with every
// check on the way and the facts that it rests on.
type Explanation struct {
	Kind      string    `json:"kind"` // "csr"
	Name      string    `json:"name"`
	At        time.Time `json:"at"`
	UID       string    `json:"uid,omitempty"`
	Signer    string    `json:"signer,omitempty"`
	Requester string    `json:"requester,omitempty"`
	Node      string    `json:"node,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	// Settled is what was decided before; the judgement below is then how it would be
	// decided now if it were pending.
	Settled string   `json:"settled,omitempty"`
	Do      string   `json:"do"` // leave, later, approve, deny
	Rule    string   `json:"rule"`
	Why     string   `json:"why"`
	Steps   []Step   `json:"steps,omitempty"`
	Facts   FactsOut `json:"facts"`
}

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

// Start runs the informers of the requests until ctx ends, for a command that explains
// without Run; synced tells when they are filled.
func (s *Service) Start(ctx context.Context) (synced []cache.InformerSynced) {
	for _, i := range s.informers() {
		go i.Run(ctx.Done())
	}
	return s.ready
}

// Explain judges a request by its name as the service does, and tells every step. It
// decides and deletes nothing. An error says that the request cannot be read.
func (s *Service) Explain(ctx context.Context, name string) (Explanation, error) {
	csr, err := s.deps.Client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Explanation{}, fmt.Errorf("read certificate request %s: %w", name, err)
	}
	req := toRequest(csr)
	was, key := req.Settled, req.Username
	if req.Signer == clientSigner {
		key = joinPrefix + req.Node()
	}
	if was != "" {
		// It waits in no line any more: neither younger requests nor allowances concern it.
		key, req.Settled = "", ""
	}
	f, _ := s.decide(ctx, key, req)
	v, steps := Trace(req, f)
	x := Explanation{Kind: "csr", Name: name, At: f.Now, UID: req.UID, Signer: req.Signer, Requester: req.Username, Node: req.Node(),
		Created: req.Created, Settled: was, Do: v.Do.String(), Rule: v.Rule, Why: v.Why, Steps: steps, Facts: factsOut(req, f)}
	return x, nil
}

func factsOut(req Request, f Facts) FactsOut {
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

// Names lists the certificate requests that the service watches, in no order.
func (s *Service) Names() (names []string) {
	for _, i := range s.informers() {
		names = append(names, i.GetStore().ListKeys()...) // a request has no namespace: its key is its name
	}
	return names
}
