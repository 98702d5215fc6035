package services

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	certv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testSwap lets a Node put a hostile request in the place of an honest one of the same
// name while the agent judges (T7): what was judged is what is approved, or nothing.
func (c *corpus) testSwap(t *testing.T) {
	const rounds = 20
	authors := c.spares(t, 2)
	requests := c.cp.Client().CertificatesV1().CertificateSigningRequests()
	hostile := map[string][]byte{}
	approvedFirst := 0
	for round := range rounds {
		e := authors[round%len(authors)]
		name := fmt.Sprintf("swap-%02d", round)
		if err := c.send(t, name, e.kubelet()); err != nil {
			t.Fatal(err)
		}
		// Every round leaves the agent some more time before the swap.
		time.Sleep(time.Duration(round) * 5 * time.Millisecond)
		if _, outcome := c.seen.of(name); outcome != "" {
			approvedFirst++
		}
		if err := requests.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		a := e.kubelet()
		a.names = append(a.names, dnsName("bystander"))
		hostile[name] = armour(a.der(t))
		a.pem = func([]byte) []byte { return hostile[name] }
		if err := c.send(t, name, a); err != nil {
			t.Fatal(err)
		}
	}
	// A request's content cannot be changed in place either.
	held, err := requests.Get(t.Context(), "swap-00", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	was := held.Spec.Request
	held.Spec.Request = armour(authors[0].kubelet().der(t))
	if held, err = requests.Update(t.Context(), held, metav1.UpdateOptions{}); err == nil && !bytes.Equal(held.Spec.Request, was) {
		t.Error("the API server lets a request change")
	} else if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	await.True(t, "the last requests are judged", func() bool {
		got := c.verdicts(t)
		return got["swap-18"] == "R9" && got["swap-19"] == "R9"
	})
	time.Sleep(settle)
	list, err := requests.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]int{}
	for _, csr := range list.Items {
		if !strings.HasPrefix(csr.Name, "swap-") {
			continue
		}
		outcome := "held"
		for _, cond := range csr.Status.Conditions {
			outcome = strings.ToLower(string(cond.Type))
			if cond.Type == certv1.CertificateApproved && bytes.Equal(csr.Spec.Request, hostile[csr.Name]) {
				t.Errorf("%s: the swapped request is APPROVED: %s", csr.Name, cond.Message)
			}
		}
		outcomes[outcome]++
	}
	t.Logf("%d requests were swapped under the same name (%d after the first was approved): %v", rounds, approvedFirst, outcomes)
}
