package services

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// testCombined has honest machines ask with two to four of the tricks at once, drawn from
// a seed (AUTOSCALER_TEST_SEED plays another). Tricks may undo each other: what is approved
// has to be a certificate of the machine's own names and addresses, for no other use.
func (c *corpus) testCombined(t *testing.T) {
	seed := uint64(1)
	if text := os.Getenv("AUTOSCALER_TEST_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	random := rand.New(rand.NewPCG(seed, 5))
	simple := func(e *csrCase) bool { return e.on == "" && !e.join }
	tricks := slices.DeleteFunc(slices.Clone(c.hostile), func(e *csrCase) bool {
		return !simple(e) || e.ask == nil || e.prepare != nil || e.register != nil || leave(e.rule)
	})
	machines := slices.DeleteFunc(slices.Clone(c.honest), func(e *csrCase) bool { return !simple(e) || e.node == "leader" })
	type sent struct {
		e    *csrCase
		what string
		a    asking
	}
	requests := map[string]sent{}
	for n, e := range machines {
		s := sent{e: e, a: e.kubelet()}
		if e.ask != nil {
			e.ask(e, &s.a)
		}
		for range 2 + random.IntN(3) {
			trick := tricks[random.IntN(len(tricks))]
			trick.ask(e, &s.a)
			s.what += ", " + trick.name
		}
		requests[fmt.Sprintf("combined-%03d", n)] = s
	}
	refused := map[string]bool{}
	var mu sync.Mutex
	parallel(8, slices.Sorted(keys(requests)), func(name string) {
		err := c.send(t, name, requests[name].a)
		mu.Lock()
		defer mu.Unlock()
		if refused[name] = refusedByAPI(err); err != nil && !refused[name] {
			t.Errorf("%s%s: %v", name, requests[name].what, err)
		}
	})
	judged := func() bool {
		said := c.verdicts(t)
		return !slices.ContainsFunc(slices.Collect(keys(requests)), func(name string) bool { return !refused[name] && said[name] == "" })
	}
	await.True(t, fmt.Sprintf("all combinations (seed %d) are judged", seed), judged)
	time.Sleep(settle)
	list, err := c.cp.Client().CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]int{}
	for _, csr := range list.Items {
		s, ours := requests[csr.Name]
		if !ours {
			continue
		}
		outcome := "held"
		for _, cond := range csr.Status.Conditions {
			if outcome = "denied"; cond.Type != certv1.CertificateApproved {
				continue
			}
			outcome = "approved"
			if why := beyond(csr.Spec.Request, s.e); why != "" {
				t.Errorf("seed %d: %s (%s%s): APPROVED: %s", seed, csr.Name, s.e.name, s.what, why)
			}
		}
		outcomes[outcome]++
	}
	for _, r := range refused {
		if r {
			outcomes["refused by the API server"]++
		}
	}
	t.Logf("%d combinations of %d tricks (seed %d): %v", len(requests), len(tricks), seed, outcomes)
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// beyond says what a request asks for that is not the machine's own; empty: nothing.
func beyond(request []byte, e *csrCase) string {
	block, _ := pem.Decode(request)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err.Error()
	}
	i := e.instance
	short := func(i aws.Instance) string { return strings.Split(i.PrivateDNS, ".")[0] }
	names := []string{e.node, i.PrivateDNS, short(i), i.ID, i.ID + ".ec2.internal", i.PublicDNS, i.ID + ".workers.example.com",
		"ip-" + strings.ReplaceAll(i.PrivateIP, ".", "-") + ".ec2.internal", "ip-" + strings.ReplaceAll(i.PrivateIP, ".", "-")}
	for _, n := range csr.DNSNames {
		if !slices.Contains(names, strings.ToLower(n)) {
			return fmt.Sprintf("name %q", n)
		}
	}
	for _, ip := range csr.IPAddresses {
		if !slices.Contains([]string{i.PrivateIP, i.PublicIP, i.IPv6}, ip.String()) && (i.IPv6 == "" || mustAddr(i.IPv6).String() != ip.String()) {
			return fmt.Sprintf("address %s", ip)
		}
	}
	switch {
	case len(csr.EmailAddresses)+len(csr.URIs) > 0:
		return "names of other kinds"
	case csr.Subject.CommonName != "system:node:"+e.node || !slices.Equal(csr.Subject.Organization, []string{"system:nodes"}) || len(csr.Subject.Names) != 2:
		return "subject " + csr.Subject.String()
	case len(csr.Extensions) != 1:
		return fmt.Sprintf("%d extensions", len(csr.Extensions))
	}
	return ""
}
