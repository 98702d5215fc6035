package csrsigner

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// words are what the journal and the Events say about one kind of certificate.
type words struct{ journal, event string }

func wordsFor(signer string) words {
	if signer == rules.ClientSigner {
		return words{"client certificate", "ClientCertificate"}
	}
	return words{"serving certificate", "ServingCertificate"}
}

// report tells of a verdict (R19): a log line and a count for each new one, an Event
// for what an operator should see.
func (s *Service) report(key string, req rules.Request, f rules.Facts, v rules.Verdict) {
	overdue := v.Do == rules.Later && time.Since(req.Created) > s.cfg.WarnAfter
	if !s.queue.News(key, v.Rule, req.UID+"/"+v.Do.String()+"/"+v.Rule+"/"+strconv.FormatBool(overdue)) {
		return
	}
	var instance cluster.InstanceID
	var group cluster.GroupID
	if f.Inventory != nil && f.Inventory.Instance != nil {
		instance, group = f.Inventory.Instance.ID, f.Inventory.Group
	}
	var names []string
	for _, n := range req.Parsed.DNS[:min(len(req.Parsed.DNS), rules.MaxNames)] {
		names = append(names, rules.Clip(n, 4*rules.NameBytes))
	}
	for _, a := range req.Parsed.IPs[:min(len(req.Parsed.IPs), rules.MaxNames)] {
		names = append(names, a.String())
	}
	entry := s.log.WithFields(logrus.Fields{"csr": req.Name, "uid": req.UID, "node": req.Node(), "instance": instance,
		"group": group, "names": names, "rule": v.Rule, "why": v.Why, "took": time.Since(req.Created).Round(time.Millisecond)})
	if s.deps.Metrics != nil {
		s.deps.Metrics.Count("csr_decisions_total", "do", v.Do.String(), "rule", v.Rule)
	}
	w := wordsFor(req.Signer)
	text := fmt.Sprintf("%s (%s): %s", req.Name, v.Rule, v.Why)
	// Who floods with names that nobody has must not flood the journal and the Events.
	crowd := isJoin(key) && instance == "" && s.Alarm() != ""
	if !crowd {
		s.remember(req, v)
	}
	switch {
	case v.Do == rules.Approve:
		entry.Info(w.journal + " approved")
		kind := corev1.EventTypeNormal
		if f.Elder != nil { // the text names the other Node that says to be the machine
			kind = corev1.EventTypeWarning
		}
		s.event(req, f, kind, w.event+"Approved", text)
	case v.Do == rules.Deny:
		entry.Warn(w.journal + " denied")
		s.event(req, f, corev1.EventTypeWarning, w.event+"Denied", text)
	case crowd:
		entry.Debug(w.journal + " is held")
	case v.NeedsOperator(f):
		entry.Warn(w.journal + " is held until an operator decides")
		s.event(req, f, corev1.EventTypeWarning, w.event+"Held", text)
	case overdue:
		entry.Warn(w.journal + " is held for long")
		s.event(req, f, corev1.EventTypeWarning, w.event+"Held", text)
	default:
		entry.Info(w.journal + " is held")
	}
}

func (s *Service) event(req rules.Request, f rules.Facts, kind, reason, text string) {
	node := req.Node()
	if s.deps.Events == nil || !rules.IsSubdomain(strings.ToLower(node)) {
		return
	}
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(node)}
	if f.Node != nil {
		ref.UID = types.UID(f.Node.UID)
	}
	s.deps.Events.Event(ref, kind, reason, text)
}
