package csrsigner

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
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
	Settled string         `json:"settled,omitempty"`
	Do      string         `json:"do"` // leave, later, approve, deny
	Rule    string         `json:"rule"`
	Why     string         `json:"why"`
	Steps   []rules.Step   `json:"steps,omitempty"`
	Facts   rules.FactsOut `json:"facts"`
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
	if req.Signer == rules.ClientSigner {
		key = joinPrefix + req.Node()
	}
	if was != "" {
		// It waits in no line any more: neither younger requests nor allowances concern it.
		key, req.Settled = "", ""
	}
	f, _ := s.decide(ctx, key, req)
	v, steps := rules.Trace(req, f)
	x := Explanation{Kind: "csr", Name: name, At: f.Now, UID: req.UID, Signer: req.Signer, Requester: req.Username, Node: req.Node(),
		Created: req.Created, Settled: was, Do: v.Do.String(), Rule: v.Rule, Why: v.Why, Steps: steps, Facts: rules.NewFactsOut(req, f)}
	return x, nil
}

// Names lists the certificate requests that the service watches, in no order.
func (s *Service) Names() (names []string) {
	for _, i := range s.informers() {
		names = append(names, i.GetStore().ListKeys()...) // a request has no namespace: its key is its name
	}
	return names
}
