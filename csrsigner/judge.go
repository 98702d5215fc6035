package csrsigner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/queue"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/deadline"
)

// judge reads one request live, decides and writes the decision.
func (s *Service) judge(ctx context.Context, key string, seen *certificatesv1.CertificateSigningRequest) (queue.Outcome, error) {
	if v, req, f, held := s.unexpected(ctx, key, seen); held {
		s.report(key, req, f, v)
		return s.patience(req), nil
	}
	csr, err := s.deps.Client.CertificatesV1().CertificateSigningRequests().Get(ctx, seen.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return queue.Backoff, nil
	}
	if err != nil {
		return queue.Backoff, fmt.Errorf("read request %s: %w", seen.Name, err)
	}
	req := toRequest(csr)
	f, v := s.decide(ctx, key, req)
	if v.Rule == rules.RuleStale && s.replace(ctx, f) {
		return queue.Progress, nil // judged again without the Node that stood in the way
	}
	if v.Do == rules.Approve || v.Do == rules.Deny {
		if may, why := s.deps.MayAct(); !may {
			s.log.WithFields(map[string]any{"csr": req.Name, "why": why}).Info("certificate request is left to the agent that leads now")
			return queue.Backoff, nil
		}
	}
	if v.Do == rules.Approve && req.Signer == rules.ClientSigner {
		// On disk before the approval is: a crash between the two forgets nothing, and of
		// two requests under two names of one instance the second finds the first.
		if err := s.ledger.Enter(f.Inventory.Instance.ID, rules.Issue{Node: req.Node(), Key: req.Parsed.KeyHash, CSR: req.Name, At: time.Now()}); err != nil {
			f.Join.Fault = err.Error()
			v = rules.Decide(req, f)
		}
	}
	switch v.Do {
	case rules.Approve, rules.Deny:
		if v.Do == rules.Deny && isJoin(key) && !s.mayDecide(denials(req)) {
			return queue.Slowly, nil // it stays pending, which lets nobody in either
		}
		err := s.carryOut(ctx, key, csr, v)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return queue.Progress, nil // R18: judged again on what is there now
		}
		if refusedBy(err, listPolicy) {
			return s.unlisted(key, req, f, err), nil
		}
		if err != nil {
			return queue.Backoff, fmt.Errorf("decide request %s: %w", csr.Name, err)
		}
		s.spend(key, s.cfg.PerNodeHour)
		if v.Do == rules.Deny && isJoin(key) {
			s.spend(denials(req), denialsPerHour)
		}
		s.report(key, req, f, v)
		return queue.Progress, nil
	case rules.Later:
		s.report(key, req, f, v)
		return s.patience(req), nil
	}
	return queue.Backoff, nil
}

// denialsPerHour bounds how many requests made with one bootstrap token are denied: who
// has the token can ask under as many names as there are.
const denialsPerHour = 60

func denials(req rules.Request) string { return "denials:" + req.Username }

func (s *Service) patience(req rules.Request) queue.Outcome {
	if time.Since(req.Created) > s.cfg.WarnAfter {
		return queue.Slowly
	}
	return queue.Backoff
}

// unexpected holds client requests for names that no instance is expected under without
// reading them: with a stolen token such names come by the thousand. Only the verdict
// "hold" is ever taken this way, by the check's own words.
func (s *Service) unexpected(ctx context.Context, key string, seen *certificatesv1.CertificateSigningRequest) (rules.Verdict, rules.Request, rules.Facts, bool) {
	node, ok := strings.CutPrefix(key, joinPrefix)
	if !ok {
		return rules.Verdict{}, rules.Request{}, rules.Facts{}, false
	}
	req := rules.Request{Name: seen.Name, UID: string(seen.UID), Signer: rules.ClientSigner, Username: seen.Spec.Username,
		Created: seen.CreationTimestamp.Time, Parsed: rules.Parsed{CommonNames: []string{rules.UserPrefix + node}}}
	f := rules.Facts{Now: time.Now(), Join: &rules.Join{}}
	for _, age := range []time.Duration{s.cfg.InventoryMaxAge, refetchAge} {
		if f.Inventory != nil && !s.mayRefetch(rules.ClientSigner) {
			break
		}
		groups, err := s.deps.Inventory.Groups(ctx, age)
		if err != nil {
			return rules.Verdict{}, req, f, false // the whole judgement names what is wrong
		}
		if f.Inventory = s.sources().JoinWitness(groups, node); len(f.Inventory.Claimants) > 0 {
			return rules.Verdict{}, req, f, false
		}
	}
	return rules.Unexpected(req, f), req, f, true
}

// replace has the Node of a machine that is gone deleted (S1).
func (s *Service) replace(ctx context.Context, f rules.Facts) bool {
	if s.deps.ReapStale == nil || f.Node == nil || f.Node.Ready || f.Node.Deleting || rules.OwnNode(f) {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, reapPatience)
	defer cancel()
	err := s.deps.ReapStale(bounded, f.Node.Name)
	entry := s.log.WithFields(map[string]any{"rule": rules.RuleStale, "node": f.Node.Name, "instance": f.Node.ProviderID})
	if err != nil {
		entry.WithField("why", err.Error()).Debug("the Node that stands in a join's way stays for now")
		return false
	}
	entry.WithField("why", fmt.Sprintf("instance %s joins under its name", f.Inventory.Instance.ID)).Info("the Node of a machine that is gone made room")
	return true
}

// decide gathers facts in the order of their cost: the facts of the cluster, the
// inventory as it is, the inventory read again.
func (s *Service) decide(ctx context.Context, key string, req rules.Request) (rules.Facts, rules.Verdict) {
	f := s.gather(ctx, key, req)
	v := rules.Decide(req, f)
	if v.Do != rules.Later || f.Inventory != nil || v.Rule != rules.RuleInventory && v.Rule != rules.RuleJoinInventory {
		return f, v
	}
	for _, age := range []time.Duration{s.cfg.InventoryMaxAge, refetchAge} {
		// A cached inventory said no: it may only be too old to know a new instance.
		if f.Inventory != nil && (f.Inventory.Problem != "" || justRead(f.Inventory) || !s.mayRefetch(req.Signer)) {
			break
		}
		groups, err := s.deps.Inventory.Groups(ctx, age)
		f.Now = time.Now()
		if req.Signer == rules.ClientSigner {
			f.Inventory = s.sources().JoinWitness(groups, req.Node())
			if i := f.Inventory.Instance; i != nil {
				s.gatherIssued(ctx, *i, req, &f)
			}
		} else {
			f.Inventory = s.sources().Witness(groups, f.Node.ProviderID, req.Node(), req.Parsed)
			if n, err := s.nodes.Get(req.Node()); err == nil {
				f.Elder = s.elder(ctx, n, req)
			}
		}
		if err != nil && len(groups) == 0 {
			f.Inventory.Problem = err.Error()
		}
		v = rules.Decide(req, f)
		// What another machine owned a moment ago may have moved: only a new read denies.
		if v.Do == rules.Approve || v.Do == rules.Deny && justRead(f.Inventory) {
			break
		}
	}
	if v.Do == rules.Deny && !justRead(f.Inventory) { // the allowance of reads is used up
		v = v.Hold(byOldRead)
	}
	return f, v
}

const byOldRead = ", by a read that may be too old to deny for good"

func (s *Service) sources() rules.Sources {
	out := rules.Sources{Extra: s.cfg.ExtraNames}
	if s.deps.Machines != nil {
		out.Machines = s.deps.Machines()
	}
	return out
}

// justRead tells whether reading again could say nothing new.
func justRead(inv *rules.Witness) bool {
	return inv.Instance != nil && time.Since(inv.ReadAt) < justNow
}

func (s *Service) gather(ctx context.Context, key string, req rules.Request) rules.Facts {
	now := time.Now()
	f := rules.Facts{Now: now, MaxExpiration: s.cfg.MaxExpiration, MaxAge: s.cfg.InventoryMaxAge, Taken: map[string]string{}}
	if n := s.newest(key); n != nil && n.Name != req.Name {
		f.Newer = n.Name
	}
	f.Spent = !s.mayDecide(key)
	f.Forbidden = s.protected(ctx, now)
	if s.deps.OwnNode != "" && (req.Signer == rules.ClientSigner || req.Node() == s.deps.OwnNode) {
		self := s.deps.Self()
		f.Self = &self
	}
	if req.Signer == rules.ClientSigner {
		s.gatherJoin(ctx, req, &f)
		return f
	}
	if n, err := s.nodes.Get(req.Node()); err == nil {
		f.Node = toNode(n)
	}
	for _, m := range s.listed() {
		if m.Node == req.Node() {
			f.Listed = &m
		}
	}
	for _, name := range req.Parsed.DNS {
		if c := rules.CanonicalName(name); c != req.Node() {
			if n, err := s.nodes.Get(c); err == nil {
				f.Taken[c] = n.Name
			}
		}
	}
	return f
}

// listed is the operator's list of the control plane's machines.
func (s *Service) listed() []rules.Machine {
	if s.deps.ControlPlane == nil {
		return nil
	}
	return s.deps.ControlPlane()
}

// gatherJoin adds what a client request is judged by. The Node is read live: a cache
// that is a moment old would let a second machine in beside the first.
func (s *Service) gatherJoin(ctx context.Context, req rules.Request, f *rules.Facts) {
	if !s.closed() {
		return
	}
	f.Join = &rules.Join{Group: s.deps.TokenGroup, Window: s.cfg.JoinWindow}
	if req.Settled != "" || req.Node() == "" {
		return
	}
	n, err := s.deps.Client.CoreV1().Nodes().Get(ctx, req.Node(), metav1.GetOptions{})
	switch {
	case err == nil:
		f.Node = toNode(n)
	case !apierrors.IsNotFound(err):
		f.Join.Fault = fmt.Sprintf("Node %s cannot be read: %v", req.Node(), err)
	}
	if f.ControlPlane, err = s.controlPlane(ctx); err != nil {
		f.Join.Fault = err.Error()
	}
	for _, m := range s.listed() { // whether or not it has a Node yet
		f.ControlPlane = append(slices.Clip(f.ControlPlane), append([]string{m.Node}, m.Names...)...)
	}
	f.Join.Token = s.token(ctx, req.Username)
}

// protected returns what R9 protects, read again every forbiddenTTL. An old reading
// serves on when the new one fails; nil means that there never was one.
func (s *Service) protected(ctx context.Context, now time.Time) *rules.Forbidden {
	known := func() (b *rules.Forbidden, fresh bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.forbidden, s.forbidden != nil && now.Sub(s.forbiddenAt) < forbiddenTTL
	}
	if b, fresh := known(); fresh {
		return b
	}
	// One reads, and without s.mu: the status line and the socket ask for it while the API server does not answer.
	select {
	case s.protecting <- struct{}{}:
	case <-ctx.Done():
		b, _ := known()
		return b
	}
	defer func() { <-s.protecting }()
	if b, fresh := known(); fresh {
		return b
	}
	b, err := s.deps.Forbidden(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		if b.Unread != "" && (s.forbidden == nil || s.forbidden.Unread != b.Unread) {
			s.log.WithFields(map[string]any{"rule": "R9", "why": b.Unread}).Warn("part of what belongs to the cluster cannot be read: no rule keeps workers from those names and addresses (autoscaler-agent check)")
		}
		s.forbidden, s.forbiddenAt, s.forbiddenErr = b, now, ""
		return b
	}
	if text := err.Error(); text != s.forbiddenErr {
		s.forbiddenErr = text
		s.log.WithError(err).WithField("rule", "R9").Warn("what belongs to the API server cannot be read: without it no request is approved")
	}
	return s.forbidden
}

// mayDecide tells whether there is something left of a key's allowance.
func (s *Service) mayDecide(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.allowances[key]
	if a == nil {
		return true
	}
	a.refill(time.Now())
	return a.tokens >= 1
}

func (s *Service) spend(key string, perHour int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.allowances[key]
	if a == nil {
		a = &allowance{perHour: float64(perHour)}
		s.allowances[key] = a
	}
	a.refill(time.Now())
	a.tokens--
}

// mayRefetch bounds the cloud calls that requests of unknown machines can cause, for
// Nodes and for joins apart. Requests of one moment share one read and so one token:
// thirty machines that join together must not use up what the thirty-first needs.
func (s *Service) mayRefetch(signer string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.refetchedAt) < refetchAge {
		return true
	}
	b := s.refetches[signer]
	if b == nil {
		return false
	}
	b.refill(now, refetchBurst, refetchPerHour)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	s.refetchedAt = now
	return true
}

// mayWrite bounds a write by the right to make it. Whether this agent leads is asked once
// more: cloud and ledger may have taken their time.
func (s *Service) mayWrite(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if may, why := s.deps.MayAct(); !may {
		return nil, nil, fmt.Errorf("not written: %s", why)
	}
	ctx, cancel := deadline.Within(ctx, s.deps.ActUntil)
	if ctx.Err() != nil {
		defer cancel()
		return nil, nil, fmt.Errorf("not written: %w", context.Cause(ctx))
	}
	return ctx, cancel, nil
}

// write puts the verdict on the very object that was judged: a changed one is
// refused by its resource version (R18). The call ends before the lead can.
func (s *Service) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, v rules.Verdict) error {
	kind, reason, message := certificatesv1.CertificateApproved, "AutoscalerAgentWitnessed", v.Rule+": "+v.Why
	if v.Do == rules.Deny {
		kind, reason = certificatesv1.CertificateDenied, "AutoscalerAgent"+v.Rule
	} else if node, _ := whoAsks(csr.Spec.Request); csr.Spec.SignerName == rules.ClientSigner {
		// units/admission-policy.yaml proves it by the request, and compares it with the control plane's Nodes.
		message = "node " + node + ": " + message
	}
	ctx, cancel, err := s.mayWrite(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	_, err = s.deps.Client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
