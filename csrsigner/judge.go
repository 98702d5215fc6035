package csrsigner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sirupsen/logrus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// newest returns the youngest pending request of a requester.
func (s *Service) newest(key string) *certificatesv1.CertificateSigningRequest {
	objects, err := s.csrs.GetIndexer().ByIndex(byRequester, key)
	if err != nil {
		return nil
	}
	var best *certificatesv1.CertificateSigningRequest
	for _, o := range objects {
		if csr, ok := o.(*certificatesv1.CertificateSigningRequest); ok && (best == nil || younger(csr, best)) {
			best = csr
		}
	}
	return best
}

// younger compares by creation, to which the API gives whole seconds, then by
// resource version, which grows.
func younger(a, b *certificatesv1.CertificateSigningRequest) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.After(b.CreationTimestamp.Time)
	}
	va, errA := strconv.ParseUint(a.ResourceVersion, 10, 64)
	vb, errB := strconv.ParseUint(b.ResourceVersion, 10, 64)
	if errA == nil && errB == nil && va != vb {
		return va > vb
	}
	return a.Name > b.Name
}

// judge reads one request live, decides and writes the decision.
func (s *Service) judge(ctx context.Context, seen *certificatesv1.CertificateSigningRequest) (retry, error) {
	csr, err := s.deps.Client.CertificatesV1().CertificateSigningRequests().Get(ctx, seen.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return backoff, nil
	}
	if err != nil {
		return backoff, fmt.Errorf("read request %s: %w", seen.Name, err)
	}
	req := toRequest(csr)
	f, v := s.decide(ctx, req)
	switch v.Do {
	case Approve, Deny:
		err := s.write(ctx, csr, v)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return progress, nil // R18: judged again on what is there now
		}
		if err != nil {
			return backoff, fmt.Errorf("decide request %s: %w", csr.Name, err)
		}
		s.spend(req.Username)
		s.report(req, f, v)
		return progress, nil
	case Later:
		s.report(req, f, v)
		if time.Since(req.Created) > s.cfg.WarnAfter {
			return slowly, nil
		}
	}
	return backoff, nil
}

// decide gathers facts in the order of their cost: what the cluster knows, the
// inventory as it is, the inventory read again.
func (s *Service) decide(ctx context.Context, req Request) (Facts, Verdict) {
	f := s.gather(ctx, req)
	v := Decide(req, f)
	if v.Do != Later || v.Rule != RuleInventory || f.Inventory != nil {
		return f, v
	}
	for _, age := range []time.Duration{s.cfg.InventoryMaxAge, refetchAge} {
		// A cached inventory said no: it may only be too old to know a new instance.
		if f.Inventory != nil && (f.Inventory.Problem != "" || f.Inventory.justRead() || !s.mayRefetch()) {
			break
		}
		groups, err := s.deps.Inventory.Groups(ctx, age)
		f.Now = time.Now()
		f.Inventory = WitnessOf(groups, f.Node.ProviderID, req.Node(), req.Parsed)
		if err != nil && len(groups) == 0 {
			f.Inventory.Problem = err.Error()
		}
		v = Decide(req, f)
		// What another machine owned a moment ago may have moved: only a new read denies.
		if v.Do == Approve || v.Do == Deny && f.Inventory.justRead() {
			break
		}
	}
	return f, v
}

// justRead tells whether reading again could say nothing new.
func (inv *Witness) justRead() bool {
	return inv.Instance != nil && time.Since(inv.ReadAt) < justNow
}

func (s *Service) gather(ctx context.Context, req Request) Facts {
	now := time.Now()
	f := Facts{Now: now, MaxExpiration: s.cfg.MaxExpiration, MaxAge: s.cfg.InventoryMaxAge, Taken: map[string]string{}}
	if n := s.newest(req.Username); n != nil && n.Name != req.Name {
		f.Newer = n.Name
	}
	f.Spent = !s.mayDecide(req.Username, now)
	if n, err := s.nodes.Get(req.Node()); err == nil {
		f.Node = toNode(n)
	}
	for _, name := range req.Parsed.DNS {
		if c := canonical(name); c != req.Node() {
			if n, err := s.nodes.Get(c); err == nil {
				f.Taken[c] = n.Name
			}
		}
	}
	f.Forbidden = s.protected(ctx, now)
	return f
}

// protected returns what R9 protects, read again every forbiddenTTL. An old reading
// serves on when the new one fails; nil means that there never was one.
func (s *Service) protected(ctx context.Context, now time.Time) *Forbidden {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forbidden != nil && now.Sub(s.forbiddenAt) < forbiddenTTL {
		return s.forbidden
	}
	b, err := s.deps.Forbidden(ctx)
	if err == nil {
		s.forbidden, s.forbiddenAt, s.forbiddenErr = b, now, ""
		return b
	}
	if text := err.Error(); text != s.forbiddenErr {
		s.forbiddenErr = text
		s.log.WithError(err).WithField("rule", "R9").Warn("what belongs to the API server cannot be read: without it no request is approved")
	}
	return s.forbidden
}

func (s *Service) mayDecide(user string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.allowances[user]
	if b == nil {
		return true
	}
	b.refill(now, float64(s.cfg.PerNodeHour), float64(s.cfg.PerNodeHour))
	return b.tokens >= 1
}

func (s *Service) spend(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.allowances[user]
	if b == nil {
		b = &bucket{}
		s.allowances[user] = b
	}
	b.refill(time.Now(), float64(s.cfg.PerNodeHour), float64(s.cfg.PerNodeHour))
	b.tokens--
}

// mayRefetch bounds the cloud calls that requests of unknown machines can cause.
// Requests of one moment share one read and so one token: thirty machines that join
// together must not use up what the thirty-first needs.
func (s *Service) mayRefetch() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.refetchedAt) < refetchAge {
		return true
	}
	s.refetches.refill(now, refetchBurst, refetchPerHour)
	if s.refetches.tokens < 1 {
		return false
	}
	s.refetches.tokens--
	s.refetchedAt = now
	return true
}

// write puts the verdict on the very object that was judged: a changed one is
// refused by its resource version (R18).
func (s *Service) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, v Verdict) error {
	kind, reason := certificatesv1.CertificateApproved, "AutoscalerAgentWitnessed"
	if v.Do == Deny {
		kind, reason = certificatesv1.CertificateDenied, "AutoscalerAgent"+v.Rule
	}
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: v.Rule + ": " + v.Why})
	_, err := s.deps.Client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
	return err
}

// report tells of a verdict (R19): a log line and a count for each new one, an Event
// for what an operator should see.
func (s *Service) report(req Request, f Facts, v Verdict) {
	overdue := v.Do == Later && time.Since(req.Created) > s.cfg.WarnAfter
	if !s.queue.news(req.Username, req.UID+"/"+v.Do.String()+"/"+v.Rule+"/"+strconv.FormatBool(overdue)) {
		return
	}
	var instance cluster.InstanceID
	var group cluster.GroupID
	if f.Inventory != nil && f.Inventory.Instance != nil {
		instance, group = f.Inventory.Instance.ID, f.Inventory.Group
	}
	names := slices.Clone(req.Parsed.DNS)
	for _, a := range req.Parsed.IPs {
		names = append(names, a.String())
	}
	entry := s.log.WithFields(logrus.Fields{"csr": req.Name, "uid": req.UID, "node": req.Node(), "instance": instance,
		"group": group, "names": names, "rule": v.Rule, "why": v.Why, "took": time.Since(req.Created).Round(time.Millisecond)})
	if s.deps.Metrics != nil {
		s.deps.Metrics.Count("csr_decisions_total", "do", v.Do.String(), "rule", v.Rule)
	}
	text := fmt.Sprintf("%s (%s): %s", req.Name, v.Rule, v.Why)
	switch {
	case v.Do == Approve:
		entry.Info("serving certificate approved")
		s.event(req, f, corev1.EventTypeNormal, "ServingCertificateApproved", text)
	case v.Do == Deny:
		entry.Warn("serving certificate denied")
		s.event(req, f, corev1.EventTypeWarning, "ServingCertificateDenied", text)
	case overdue:
		entry.Warn("serving certificate is held for long")
		s.event(req, f, corev1.EventTypeWarning, "ServingCertificateHeld", text)
	default:
		entry.Info("serving certificate is held")
	}
}

func (s *Service) event(req Request, f Facts, kind, reason, text string) {
	if s.deps.Events == nil {
		return
	}
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: req.Node(), UID: types.UID(req.Node())}
	if f.Node != nil {
		ref.UID = types.UID(f.Node.UID)
	}
	s.deps.Events.Event(ref, kind, reason, text)
}
