package observe_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	cloud "github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// start returns a synced Observer of the objects and of a cloud with one group.
func start(ctx context.Context, objects ...runtime.Object) (*observe.Observer, *inventory.Inventory, error) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	log := quiet.WithField("service", "observe")
	groups := cloud.New(time.Now())
	groups.AddGroup(cluster.NodeGroup{ID: "workers", Min: 1, Max: 5, Target: 2, Template: cluster.Template{Spec: "v1"}})
	reads := inventory.New(groups, time.Second, time.Minute, time.Minute, log)
	client := kubetest.Client(fake.NewClientset(objects...))
	shared := kube.NewInformers(client, convert.Strip)
	o, err := observe.New(observe.Config{StaleAfter: time.Minute, Schedulers: []string{"default-scheduler"}}, client, shared, reads, log)
	if err != nil {
		return nil, nil, err
	}
	o.Start(ctx)
	if err := o.WaitForSync(ctx); err != nil {
		return nil, nil, err
	}
	_, err = reads.Groups(ctx, 0)
	return o, reads, err
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// Outcomes belong to one Snapshot, and a read-only Snapshot does not take them.
func TestOutcomesAreInOneSnapshot(t *testing.T) {
	o, _, err := start(t.Context(), node("a"))
	if err != nil {
		t.Fatal(err)
	}
	o.AddOutcomes([]cluster.Outcome{{}})
	for i, want := range []struct {
		take func() cluster.Snapshot
		n    int
	}{{o.ReadOnlySnapshot, 0}, {o.Snapshot, 1}, {o.Snapshot, 0}} {
		if s := want.take(); len(s.Outcomes) != want.n || len(s.Nodes) != 1 || len(s.Groups) != 1 || s.Now.IsZero() || s.Stale != "" {
			t.Errorf("Snapshot %d: %+v, want %d outcomes", i, s, want.n)
		}
	}
}

// While neither the nodes nor the groups change, the corrected groups are the same slice;
// a read that tells nothing new only changes the time of the read.
func TestCorrectedGroupsAreReused(t *testing.T) {
	o, reads, err := start(t.Context(), node("a"))
	if err != nil {
		t.Fatal(err)
	}
	first, second := o.Snapshot(), o.Snapshot()
	if &first.Groups[0] != &second.Groups[0] || &first.Nodes[0] != &second.Nodes[0] {
		t.Error("an unchanged cluster was copied")
	}
	o.RestoreCorrections(nil)
	if third := o.Snapshot(); &third.Groups[0] == &first.Groups[0] {
		t.Error("restored corrections were not applied")
	}
	if _, err := reads.Groups(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if again := o.Snapshot(); again.Groups[0].ID != "workers" || again.Groups[0].ReadAt.Before(first.Groups[0].ReadAt) {
		t.Errorf("after a second read: %+v", again.Groups[0])
	}
}
