package attest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
)

// TestThousandHonestMachines: each of a thousand new instances gets a token of its own,
// bound to the instance and to its key. The median is told without the time that STS took.
func TestThousandHonestMachines(t *testing.T) {
	const machines, batch, workers = 1000, 100, 4
	r := newRig(t, machines, nil)
	all := r.instances("workers")
	var mu sync.Mutex
	var took []time.Duration
	for from := 0; from < machines; from += batch {
		r.freshPool() // a pool has room for 124 machines at a time
		var group sync.WaitGroup
		next := make(chan int, batch)
		for n := from; n < from+batch; n++ {
			next <- n
		}
		close(next)
		for range workers {
			group.Go(func() {
				for n := range next {
					c := r.machine(n)
					signed := r.signing(r.credentials(all[n].ID), r.nonce(c)).sign(t)
					began := time.Now()
					status, answer := r.post(c, signed)
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
					if status != 200 || !strings.HasPrefix(answer, "JOIN_TOKEN=asa") {
						t.Errorf("machine %d (%s): %s", n, all[n].ID, describe(status, answer))
					}
				}
			})
		}
		group.Wait()
		instances := map[string]bool{}
		for _, s := range r.tokens() {
			instances[s.Annotations[bootstrap.InstanceAnnotation]] = true
			if len(s.Annotations[bootstrap.KeyAnnotation]) != 64 || s.Labels[bootstrap.TokenLabel] != "machine" {
				t.Errorf("token %s is bound to no key: %v %v", s.Name, s.Annotations, s.Labels)
			}
		}
		if len(instances) != batch {
			t.Errorf("%d instances of %d have a token", len(instances), batch)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(took)
	slices.Sort(r.asked)
	whole, sts := took[len(took)/2], r.asked[len(r.asked)/2]
	t.Logf("median %s with STS's own %s: %s without", whole, sts, whole-sts)
	if len(took) != machines || r.minted != machines {
		t.Errorf("%d asked, %d tokens were made", len(took), r.minted)
	}
}

// TestAgainTheSame: a machine that asks again with its key gets its token again.
func TestAgainTheSame(t *testing.T) {
	r := newRig(t, 1, nil)
	id := r.instances("workers")[0].ID
	keys := r.credentials(id)
	c := r.machine(1)
	_, first := r.post(c, r.signing(keys, r.nonce(c)).sign(t))
	status, second := r.post(c, r.signing(keys, r.nonce(c)).sign(t))
	if status != 200 || first != second || len(r.tokens()) != 1 {
		t.Errorf("%s after %q, %d tokens", describe(status, second), first, len(r.tokens()))
	}
}
