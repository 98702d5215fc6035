package services

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	certv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// floodDefault is how many requests one Node floods the agent with; make flood plays
// all of the 10,000 that are promised.
const floodDefault = 2000

// testFlood lets one Node have thousands of requests pending: another Node's is approved all
// the same, within two seconds where the flood is asked for (make flood; a speed is no part of
// make test-all), and the agent's memory stays bounded. While the flood comes in, the API server
// itself is what is slow.
func (c *corpus) testFlood(t *testing.T) {
	n, promised := floodDefault, await.Limit
	if c.flood > 0 {
		n, promised = c.flood, 2*time.Second
	}
	author, others := c.spares(t, 1)[0], c.spares(t, 12)
	a := author.kubelet()
	a.names = append(a.names, dnsName("auth.example.com")) // held by R13, never decided
	data := armour(a.der(t))
	before := rss(t, c.agent.PID())
	client := c.floodClient(t, a)
	start := time.Now()
	var sent atomic.Int64
	done := make(chan error, 1)
	go func() {
		list := make([]int, n)
		var failed atomic.Pointer[error]
		parallel(16, list, func(int) {
			_, err := client.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("flood-%05d", sent.Add(1))},
				Spec:       certv1.CertificateSigningRequestSpec{Request: data, SignerName: a.signer, Usages: a.usages},
			}, metav1.CreateOptions{})
			if err != nil {
				failed.Store(&err)
			}
		})
		if err := failed.Load(); err != nil {
			done <- *err
			return
		}
		done <- nil
	}()
	await.True(t, "the flood has begun", func() bool { return sent.Load() > int64(n/4) })
	during := c.approve(t, others[:6], await.Limit)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	after := c.approve(t, others[6:], promised)
	report(t, "honest requests while the flood comes in", during)
	report(t, "honest requests with the whole flood pending", after)
	now := rss(t, c.agent.PID())
	t.Logf("%d requests pending from one Node, sent in %s (%.0f/s); the agent has %d MB, %d MB before", n, took.Round(time.Millisecond), float64(n)/took.Seconds(), now>>20, before>>20)
	if grown := now - before; grown > 64<<20 {
		t.Errorf("the agent has grown by %d MB", grown>>20)
	}
	for name, outcome := range c.seen.outcomes() {
		if strings.HasPrefix(name, "flood-") && strings.HasPrefix(outcome, "approved") {
			t.Errorf("%s: %s", name, outcome)
		}
	}
}

// spares registers Nodes for instances that no row has taken.
func (c *corpus) spares(t *testing.T, n int) []*csrCase {
	t.Helper()
	list := c.enrol(make([]csrRow, n))
	c.register(t, list)
	return list
}

// floodClient sends as fast as it can.
func (c *corpus) floodClient(t *testing.T, a asking) kubernetes.Interface {
	t.Helper()
	cfg := c.cp.RESTConfig()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: a.user, Groups: a.groups}
	cfg.ContentType, cfg.QPS = "application/vnd.kubernetes.protobuf", -1
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// rss is what a process has resident, in bytes.
func rss(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("no /proc to read the agent's memory from")
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
