package csrsigner

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// This file knows what waits. A key is what waits in turn: a Node's serving requests
// ("system:node:NAME", the requester), or all client requests for one name
// ("join:NAME"). A token that asks for names that cannot be has one key for them all.
const (
	byKey      = "key"
	byGranted  = "granted"
	joinPrefix = "join:"
	junkPrefix = "junk:"

	// What slim keeps of a client request, as annotations of the cached object.
	slimNode = "node"
	slimKey  = "key"
	slimOurs = "ours" // made with one of our tokens
)

// slim keeps of a request what the queue needs; of what anybody can fill, nothing that
// has no bound.
func (s *Service) slim(o any) (any, error) {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	// A reflector that streams its list gives objects twice; the API has none without a
	// request.
	if !ok || len(csr.Spec.Request) == 0 {
		return o, nil
	}
	out := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: csr.Name, UID: csr.UID, ResourceVersion: csr.ResourceVersion,
			CreationTimestamp: csr.CreationTimestamp, DeletionTimestamp: csr.DeletionTimestamp},
		Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: csr.Spec.SignerName, Username: csr.Spec.Username},
	}
	for _, c := range csr.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: c.Type, Status: c.Status})
	}
	if len(csr.Status.Certificate) > 0 {
		out.Status.Certificate = []byte{0}
	}
	if csr.Spec.SignerName != rules.ClientSigner {
		return out, nil
	}
	ours := strings.HasPrefix(csr.Spec.Username, rules.TokenPrefix) && slices.Contains(csr.Spec.Groups, s.deps.TokenGroup)
	if !ours && !granted(csr) {
		return out, nil
	}
	// What somebody else approved, or approved for somebody else, is a certificate as well.
	node, key := whoAsks(csr.Spec.Request)
	out.Annotations = map[string]string{slimNode: node, slimKey: key}
	if ours {
		out.Annotations[slimOurs] = "true"
	}
	return out, nil
}

// whoAsks reads the node name and the key's hash of a client request without judging
// it; both are empty where it cannot be a node's.
func whoAsks(raw []byte) (node, key string) {
	if len(raw) > rules.MaxRequestBytes {
		return "", ""
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return "", ""
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return "", ""
	}
	node, ok := strings.CutPrefix(csr.Subject.CommonName, rules.UserPrefix)
	if !ok || !rules.IsSubdomain(node) {
		return "", ""
	}
	sum := sha256.Sum256(csr.RawSubjectPublicKeyInfo)
	return node, hex.EncodeToString(sum[:])
}

// indexKey files what is pending and ours under its key.
func (s *Service) indexKey(o any) ([]string, error) {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok || settled(csr) != "" {
		return nil, nil
	}
	switch {
	case csr.Spec.SignerName == rules.ServingSigner && strings.HasPrefix(csr.Spec.Username, rules.UserPrefix):
		return []string{csr.Spec.Username}, nil
	case csr.Spec.SignerName == rules.ClientSigner && csr.Annotations[slimOurs] != "":
		if node := csr.Annotations[slimNode]; node != "" {
			return []string{joinPrefix + node}, nil
		}
		return []string{junkPrefix + csr.Spec.Username}, nil
	}
	return nil, nil
}

// indexGranted files client certificates that were approved under the name they are for.
func indexGranted(o any) ([]string, error) {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok || csr.Spec.SignerName != rules.ClientSigner || csr.Annotations[slimNode] == "" {
		return nil, nil
	}
	if granted(csr) {
		return []string{csr.Annotations[slimNode]}, nil
	}
	return nil, nil
}

// granted tells that a request was approved: its certificate is issued, or will be.
func granted(csr *certificatesv1.CertificateSigningRequest) bool {
	how := settled(csr)
	return how == "approved" || how == "issued"
}

func isJoin(key string) bool {
	return strings.HasPrefix(key, joinPrefix) || strings.HasPrefix(key, junkPrefix)
}

func nodeOfKey(key string) string {
	if node, ok := strings.CutPrefix(key, joinPrefix); ok {
		return node
	}
	return strings.TrimPrefix(key, rules.UserPrefix)
}

// newest returns the youngest pending request of a key.
func (s *Service) newest(key string) *certificatesv1.CertificateSigningRequest {
	from := s.csrs
	if isJoin(key) {
		if from = s.joins; from == nil {
			return nil
		}
	}
	objects, err := from.GetIndexer().ByIndex(byKey, key)
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

// ring counts what is pending and rings the alarm when that is more than an honest
// cluster has. It stops nothing: a flood costs its author's own turn (R17).
func (s *Service) ring() {
	total, most, worst := 0, 0, ""
	for _, i := range s.informers() {
		for _, key := range i.GetIndexer().ListIndexFuncValues(byKey) {
			names, err := i.GetIndexer().IndexKeys(byKey, key)
			if err != nil {
				continue
			}
			if total += len(names); len(names) > most || len(names) == most && key < worst {
				most, worst = len(names), key
			}
		}
	}
	nodes, _ := s.nodes.List(labels.Everything()) // a lister over a cache has no errors
	limit := s.cfg.AlarmPending + len(nodes)
	s.mu.Lock()
	was := s.alarm
	switch {
	case s.cfg.AlarmPending > 0 && total > limit:
		s.alarm = fmt.Sprintf("%d certificate requests are pending, more than %d; %d of them for %s", total, limit, most, nodeOfKey(worst))
	case total <= limit/2:
		s.alarm = ""
	}
	now := s.alarm
	s.mu.Unlock()
	s.gauge("csr_pending_count", float64(total))
	s.gauge("csr_alarm", map[bool]float64{true: 1}[now != ""])
	switch {
	case was == "" && now != "":
		s.log.WithFields(logrus.Fields{"rule": "R17", "why": now}).Warn("certificate requests flood the cluster: honest ones are approved as ever, look at who asks")
		s.countAlarm(nodeOfKey(worst), now)
	case was != "" && now == "":
		s.log.WithField("rule", "R17").Info("the flood of certificate requests is over")
	}
}

func (s *Service) countAlarm(node, why string) {
	if s.deps.Metrics != nil {
		s.deps.Metrics.Count("csr_alarms_total")
	}
	if s.deps.Events != nil {
		ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(node)}
		if n, err := s.nodes.Get(node); err == nil {
			ref.UID = n.UID
		}
		s.deps.Events.Event(ref, corev1.EventTypeWarning, "CertificateRequestFlood", "R17: "+why)
	}
}

// Alarm says why the flood alarm rings; empty: it does not.
func (s *Service) Alarm() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alarm
}

// gauge tells metrics that can keep levels.
func (s *Service) gauge(name string, value float64) {
	if g, ok := s.deps.Metrics.(interface {
		Gauge(name string, value float64, labels ...string)
	}); ok {
		g.Gauge(name, value)
	}
}
