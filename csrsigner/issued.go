package csrsigner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/ledger"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// This file finds out what was issued already, and who else asks. None of it is this
// agent's memory alone: another agent may have led, and a certificate may have come by
// kubeadm's own token or by a person's approval.

// gatherIssued adds what is known of one instance's certificates (J13, J16).
func (s *Service) gatherIssued(ctx context.Context, i cluster.Instance, req rules.Request, f *rules.Facts) {
	names := nodeNamesOf(i)
	f.Join.Issued = s.issued(i, names, req)
	if f.Join.Issued == nil && f.Join.Fault == "" {
		f.Join.Fault = s.ledger.Gap(i.Created)
	}
	f.Join.Bearers = s.bearers(i.ID)
	f.Join.Rivals = s.rivals(ctx, i, names, req, f.Join.Token)
}

func nodeNamesOf(i cluster.Instance) []string {
	out := make([]string, 0, len(i.NodeNames))
	for _, n := range i.NodeNames {
		out = append(out, rules.CanonicalName(n))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// issued tells which certificate an instance has: by an approved request that the API
// server still has (an hour), by one that this agent has seen, leading or not, by the
// ledger. One for the very Node and key that ask comes first if it was seen approved; any
// other comes before the agent's own entry, which it writes before it approves: one that
// was made just before the lead was lost does not outweigh what another agent did approve.
func (s *Service) issued(i cluster.Instance, names []string, req rules.Request) *rules.Issue {
	var seen []rules.Issue
	for _, name := range names {
		objects, err := s.joins.GetIndexer().ByIndex(byGranted, name)
		if err != nil {
			continue
		}
		for _, o := range objects {
			if csr, ok := o.(*certificatesv1.CertificateSigningRequest); ok {
				seen = append(seen, grantOf(csr))
			}
		}
		seen = append(seen, s.ledger.Granted(name)...)
	}
	// A request from before the launch was another machine's of the same name.
	seen = slices.DeleteFunc(seen, func(x rules.Issue) bool { return rules.TooEarly(x.At, i.Created) })
	asked := rules.Issue{Node: req.Node(), Key: req.Parsed.KeyHash}
	if at := slices.IndexFunc(seen, asked.Same); at >= 0 {
		return &seen[at]
	}
	if len(seen) > 0 {
		first := slices.MinFunc(seen, func(a, b rules.Issue) int { return a.At.Compare(b.At) })
		return &first
	}
	return s.ledger.Of(i.ID)
}

// grantOf is an approved request as the ledger keeps it.
func grantOf(csr *certificatesv1.CertificateSigningRequest) rules.Issue {
	return rules.Issue{Node: csr.Annotations[slimNode], Key: csr.Annotations[slimKey], CSR: csr.Name, At: csr.CreationTimestamp.Time}
}

// learn keeps every approval that a watch shows, so that a standby knows what was issued
// when it comes to lead, after the API server has forgotten the request. A command that
// explains writes nothing: the file is the running agent's.
func (s *Service) learn(o any) {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok || s.ledger == nil || !s.runs.Load() || csr.Annotations[slimNode] == "" || !granted(csr) {
		return
	}
	if err := s.ledger.Learn(grantOf(csr)); err != nil {
		s.log.WithError(err).WithField("csr", csr.Name).Warn("an approved request is not kept: this agent forgets it when it is started anew")
	}
}

// KeyOf is the hash of the key that got the client certificate of an instance, as far as
// this agent knows; empty: none did.
func (s *Service) KeyOf(id cluster.InstanceID) string {
	if i := s.ledger.Of(id); i != nil {
		return i.Key
	}
	return ""
}

// Certified is when the newest client certificate that this agent knows of each Node's name was asked for.
func (s *Service) Certified() map[cluster.NodeName]time.Time { return s.ledger.Newest() }

// bearers are the Nodes that carry an instance's provider ID, sorted.
func (s *Service) bearers(id cluster.InstanceID) []string {
	nodes, _ := s.nodes.List(labels.Everything()) // a lister over a cache has no errors
	var out []string
	for _, n := range nodes {
		if rules.SameMachine(n.Spec.ProviderID, string(id)) {
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	return out
}

// rivals are the other pending requests for a name of the instance with another key. One
// from before the launch is nobody's (J12), and one whose token does not live, or is
// another machine's or key's, lets nobody in (J9, J11): neither can stop a machine that comes.
func (s *Service) rivals(ctx context.Context, i cluster.Instance, names []string, req rules.Request, own rules.Token) []string {
	tokens := map[string]rules.Token{req.Username: own}
	var out []string
	for _, name := range names {
		objects, err := s.joins.GetIndexer().ByIndex(byKey, joinPrefix+name)
		if err != nil {
			continue
		}
		for _, o := range objects {
			csr, ok := o.(*certificatesv1.CertificateSigningRequest)
			if !ok || csr.Name == req.Name || csr.Annotations[slimKey] == req.Parsed.KeyHash || rules.TooEarly(csr.CreationTimestamp.Time, i.Created) {
				continue
			}
			token, known := tokens[csr.Spec.Username]
			if !known {
				token = s.token(ctx, csr.Spec.Username)
				tokens[csr.Spec.Username] = token
			}
			if token.Problem == "" && rules.TokenFault(token, i) == "" && rules.KeyFault(token, csr.Annotations[slimKey]) == "" {
				out = append(out, csr.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// token looks up the token of a requester.
func (s *Service) token(ctx context.Context, username string) rules.Token {
	id, ok := strings.CutPrefix(username, rules.TokenPrefix)
	switch {
	case !ok:
		return rules.Token{Problem: "the requester has no bootstrap token"}
	case s.deps.Token == nil:
		return rules.Token{Problem: "tokens cannot be looked up: AUTOSCALER_BOOTSTRAP_ENABLED is false"}
	}
	t, err := s.deps.Token(ctx, id)
	if err != nil {
		return rules.Token{Problem: fmt.Sprintf("token %s cannot be looked up: %v", rules.Clip(id, rules.NameBytes), err)}
	}
	return t
}

// controlPlane reads live which names the control plane's Nodes have: the names of the
// Nodes and the host names of their machines. Machines that join in one second share one
// reading.
func (s *Service) controlPlane(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	names, fresh := s.control, time.Since(s.controlAt) < justNow
	s.mu.Unlock()
	if fresh {
		return names, nil
	}
	began := time.Now()
	var out []string
	for _, label := range cluster.ControlPlaneLabels {
		list, err := s.deps.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return nil, fmt.Errorf("list Nodes of the control plane: %w", err)
		}
		for _, n := range list.Items {
			out = append(out, rules.CanonicalName(n.Name), rules.CanonicalName(n.Labels[corev1.LabelHostname]))
			for _, a := range n.Status.Addresses {
				switch a.Type {
				case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
					out = append(out, rules.CanonicalName(a.Address))
				}
			}
		}
	}
	slices.Sort(out)
	out = slices.DeleteFunc(slices.Compact(out), func(n string) bool { return n == "" })
	s.mu.Lock()
	s.control, s.controlAt = out, began
	s.mu.Unlock()
	return out, nil
}

// pruneStandby forgets, once a day, a standby's records of machines that are gone.
func (s *Service) pruneStandby(ctx context.Context, now time.Time) {
	if groups, err := s.deps.Inventory.Groups(ctx, ledger.PruneAge); err == nil {
		s.ledger.Prune(groups, now)
	}
}
