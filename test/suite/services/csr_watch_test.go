package services

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// verdictLine finds the fields of a verdict in the agent's log. Quoted fields, which
// hold what requesters wrote, are taken out before.
var (
	quoted      = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	verdictRule = regexp.MustCompile(` csr=(\S+) .*\brule=(\S+)`)
)

// stale is the rule that holds a request because the cloud could not be read in time. On a loaded machine it holds
// requests that were judged before.
const stale = "R15"

// verdicts returns the last rule by which the agent judged each request; stale tells nothing of a request that was judged
// by another rule.
func (c *corpus) verdicts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(c.agent.Log)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if m := verdictRule.FindStringSubmatch(quoted.ReplaceAllString(line, `""`)); m != nil && (m[2] != stale || out[m[1]] == "") {
			out[m[1]] = m[2]
		}
	}
	return out
}

// said is what the agent's log has of a request.
func (c *corpus) said(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(c.agent.Log)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "csr="+name+" ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// watched notes when each request was decided, as a watch tells it.
type watched struct {
	mu      sync.Mutex
	decided map[string]time.Time
	outcome map[string]string // "approved: why", "denied: why"
}

// watchRequests outlives connections that the API server closes, as it does to a
// watcher that a flood has left behind.
func watchRequests(t *testing.T, cp *controlplane.ControlPlane) *watched {
	t.Helper()
	s := &watched{decided: map[string]time.Time{}, outcome: map[string]string{}}
	factory := informers.NewSharedInformerFactory(cp.Client(), 0)
	informer := factory.Certificates().V1().CertificateSigningRequests().Informer()
	_ = informer.SetTransform(func(o any) (any, error) {
		if csr, ok := o.(*certv1.CertificateSigningRequest); ok {
			csr.Spec, csr.ManagedFields = certv1.CertificateSigningRequestSpec{}, nil
		}
		return o, nil
	})
	note := func(o any) {
		if csr, ok := o.(*certv1.CertificateSigningRequest); ok {
			s.note(csr)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, o any) { note(o) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return s
}

func (s *watched) note(csr *certv1.CertificateSigningRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cond := range csr.Status.Conditions {
		if _, ok := s.decided[csr.Name]; !ok || cond.Type == certv1.CertificateApproved {
			s.decided[csr.Name], s.outcome[csr.Name] = time.Now(), strings.ToLower(string(cond.Type))+": "+cond.Message
		}
	}
}

func (s *watched) of(name string) (at time.Time, outcome string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decided[name], s.outcome[name]
}

func (s *watched) outcomes() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.outcome)
}

// within waits for the approval of a request and returns how long after start it came.
func (s *watched) within(name string, start time.Time, limit time.Duration) (time.Duration, error) {
	for deadline := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		at, outcome := s.of(name)
		switch {
		case strings.HasPrefix(outcome, "approved"):
			return at.Sub(start), nil
		case outcome != "":
			return 0, errors.New(outcome)
		case time.Now().After(deadline):
			return 0, fmt.Errorf("not approved within %s", limit)
		}
	}
}
