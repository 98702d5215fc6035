package services

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	certv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testHostile sends every hostile request at once and waits until the agent has
// judged each by name: nothing is "not approved" only because nobody looked.
func (c *corpus) testHostile(t *testing.T) {
	start := time.Now()
	names := map[string]string{} // of objects, by row
	refused := map[string]bool{}
	var mu sync.Mutex
	for i, e := range c.hostile {
		names[e.name] = fmt.Sprintf("hostile-%03d", i)
	}
	parallel(8, c.hostile, func(e *csrCase) {
		err := c.send(t, names[e.name], c.asking(e))
		mu.Lock()
		defer mu.Unlock()
		switch {
		case refusedByAPI(err):
			refused[e.name] = true
			if e.rule != byAPI {
				t.Errorf("%s: the API server refuses it (%v), want a verdict by %s", e.name, err, e.rule)
			}
		case err != nil:
			t.Errorf("%s: %v", e.name, err)
		case e.rule == byAPI:
			t.Errorf("%s: the API server took it", e.name)
		}
	})
	sent := time.Since(start)
	rules := c.judged(t, names, refused)
	approved := 0
	list, err := c.cp.Client().CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]int{}
	rows := map[string]*csrCase{}
	for _, e := range c.hostile {
		rows[names[e.name]] = e
	}
	for _, csr := range list.Items {
		e := rows[csr.Name]
		if e == nil {
			continue
		}
		outcome := "held"
		for _, cond := range csr.Status.Conditions {
			if outcome = "denied"; cond.Type != certv1.CertificateApproved {
				continue
			}
			outcome = "approved"
			approved++
			t.Errorf("%s (%s, %s): APPROVED: %s", e.name, e.threat, csr.Name, cond.Message)
		}
		outcomes[outcome]++
	}
	outcomes["refused by the API server"] = len(refused)
	threats := map[string]int{}
	for _, e := range c.hostile {
		threats[e.threat]++
	}
	t.Logf("%d hostile requests: %d approved, %v; by rule %v; by threat %v; sent in %s, all judged in %s",
		len(c.hostile), approved, outcomes, rules, threats, sent.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
}

// settle is how long a request that the agent has nothing to say about is watched.
const settle = time.Second

// leave tells that the agent says nothing of what a rule stops: it is not its business.
func leave(rule string) bool { return rule == "R0" || rule == "J0" }

// judged waits for the agent's verdict on every request that got in and compares the
// rules. It returns how many requests each rule has stopped.
func (c *corpus) judged(t *testing.T, names map[string]string, refused map[string]bool) map[string]int {
	t.Helper()
	var got map[string]string
	open := func() (list []string) {
		got = c.verdicts(t)
		for _, e := range c.hostile {
			by := got[names[e.name]]
			if !refused[e.name] && !leave(e.rule) && e.rule != byAPI && by != e.rule && (by == "" || by != e.or) {
				list = append(list, fmt.Sprintf("(%s) %s: by %q, want %s", names[e.name], e.name, by, e.rule))
			}
		}
		return list
	}
	deadline := time.Now().Add(await.Limit)
	for len(open()) > 0 && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(settle)
	for _, line := range open() {
		t.Errorf("judged: %s", line)
		_, name, _ := strings.Cut(line, "(")
		name, _, _ = strings.Cut(name, ")")
		t.Log(c.said(t, name))
	}
	rules := map[string]int{}
	for _, e := range c.hostile {
		rule := got[names[e.name]]
		switch {
		case refused[e.name]:
			rule = byAPI
		case rule == "":
			rule = e.rule
		}
		rules[rule]++
	}
	return rules
}
