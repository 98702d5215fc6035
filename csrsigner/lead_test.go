package csrsigner

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/deadline"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestMayActBeforeTheWrite: an agent that loses the lead while it asks the cloud, or while
// it keeps its ledger, writes nothing; what it wrote down is not taken for an approval.
func TestMayActBeforeTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leads atomic.Bool
		var lost atomic.Int32
		leads.Store(true)
		c := &slowCloud{cloud: &cloud{}, asked: func() { // the lead ends while the cloud is asked
			if lost.Add(1) == 1 {
				leads.Store(false)
			}
		}}
		c.launch()
		loop(t, c.cloud, func(cfg *Config, d *Deps) {
			closing("")(cfg, d)
			d.Inventory = c
			d.MayAct = func() (bool, string) { return leads.Load(), "another agent leads" }
		}, func(client *fake.Clientset, _ *Service) {
			create(t, client, joining(t, "machine", host))
			wait(time.Minute)
			if got := condition(t, client, "machine"); got != "" || lost.Load() == 0 {
				t.Errorf("%q by an agent that leads no more, cloud asked %d times", got, lost.Load())
			}
			leads.Store(true)
			wait(time.Minute)
			if got := condition(t, client, "machine"); got != "approved" {
				t.Errorf("%q when it leads again", got)
			}
		})
	})
}

// slowCloud tells when it is asked.
type slowCloud struct {
	*cloud
	asked func()
}

func (c *slowCloud) Groups(ctx context.Context, maxAge time.Duration) ([]cluster.NodeGroup, error) {
	c.asked()
	return c.cloud.Groups(ctx, maxAge)
}

// TestActUntil: no write outlives the right to act.
func TestActUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(3 * time.Second)
		client := fake.NewClientset()
		s := New(Config{}, Deps{Client: kubetest.Client(client), Informers: kube.NewInformers(kubetest.Client(client), nil), Log: logrus.NewEntry(logrus.New()),
			ActUntil: func() time.Time { return until }})
		client.PrependReactor("update", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
			t.Error("written after the right to act had ended")
			return false, nil, nil
		})
		client.PrependReactor("*", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			t.Error("the list of joins was touched after the right to act had ended")
			return false, nil, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		time.Sleep(4 * time.Second)
		if err := s.write(ctx, joining(t, "late", host), rules.Verdict{Do: rules.Approve}); !errors.Is(err, deadline.ErrOver) {
			t.Errorf("a write after the end: %v", err)
		}
		if _, err := s.enlist(ctx, joinEntry{host, "uid-late"}, false); !errors.Is(err, deadline.ErrOver) {
			t.Errorf("the list of joins after the end: %v", err)
		}
	})
}
