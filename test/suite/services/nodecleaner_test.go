package services

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

func testCleaner(t *testing.T, cp *controlplane.ControlPlane) {
	nodes := cp.Client().CoreV1().Nodes()
	if err := nodes.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	id := func(n string) cluster.InstanceID { return cluster.InstanceID("aws:///eu-west-1a/i-" + n) }
	cloud := &inventory{}
	cloud.set(worker("i-live", "live"), worker("i-dead", "dead"), worker("i-seed", "seed"), worker("i-stop", "stopped"), worker("i-twin", "twin"))
	for _, name := range []string{"live", "dead", "seed", "twin"} {
		node(t, cp, name, string(id(name)), corev1.ConditionTrue)
	}
	node(t, cp, "stopped", string(id("stop")), corev1.ConditionUnknown, cluster.TaintToBeDeleted)
	node(t, cp, "foreign", "aws:///eu-west-1a/i-foreign", corev1.ConditionUnknown)
	state := t.TempDir()
	client := agentClient(t, cp)
	shared := kube.NewInformers(client, nil)
	cfg := nodecleaner.Config{Mode: nodecleaner.ModeDelete, SightInterval: time.Second, Grace: time.Minute, KnownFor: time.Hour,
		MaxShare: 0.2, MassHold: time.Minute, FreezeFor: time.Minute, CloudController: nodecleaner.CloudControllerAuto}
	cleaner := nodecleaner.New(cfg, nodecleaner.Deps{Client: client, Informers: shared, Inventory: cloud, Witness: cloud,
		Log: quiet("nodecleaner"), StateDir: state})
	serve(t, shared, cleaner.Run)
	exists := func(name string) bool {
		_, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}

	await.True(t, "the ledger has what lives", func() bool { return len(cleaner.Memory().Seen) == 5 })
	t.Run("terminated", func(t *testing.T) {
		cloud.phase(id("dead"), cluster.PhaseGone)
		start := time.Now()
		setReady(t, cp, "dead", corev1.ConditionUnknown)
		await.True(t, "Node dead is deleted", func() bool { return !exists("dead") })
		t.Logf("deleted %s after it was not Ready, two sights 1 s apart", time.Since(start).Round(time.Millisecond))
		if kept, err := filepath.Glob(filepath.Join(state, "nodes", "dead-*.json")); err != nil || len(kept) != 1 {
			t.Errorf("kept manifests: %v %v", kept, err)
		} else if data, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(data), `"providerID": "aws:///eu-west-1a/i-dead"`) {
			t.Errorf("kept manifest: %v %s", err, data)
		}
	})
	t.Run("the seed's case", func(t *testing.T) {
		cloud.phase(id("seed"), cluster.PhaseGone)
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the controller manager writes to it, too
			n, err := nodes.Get(t.Context(), "seed", metav1.GetOptions{})
			if err != nil {
				return err
			}
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: cluster.TaintToBeDeleted, Value: "1", Effect: corev1.TaintEffectNoSchedule},
				corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule})
			_, err = nodes.Update(t.Context(), n, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		setReady(t, cp, "seed", corev1.ConditionUnknown)
		await.True(t, "Node seed is deleted", func() bool { return !exists("seed") })
	})
	t.Run("same name between the sights", func(t *testing.T) {
		cloud.phase(id("twin"), cluster.PhaseGone)
		setReady(t, cp, "twin", corev1.ConditionUnknown)
		await.True(t, "a first sight", func() bool { return !cleaner.Memory().Watch["twin"].First.IsZero() })
		if err := nodes.Delete(t.Context(), "twin", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		cloud.mu.Lock()
		cloud.groups[0].Instances = append(cloud.groups[0].Instances, worker("i-twin2", "twin"))
		cloud.mu.Unlock()
		again := node(t, cp, "twin", "aws:///eu-west-1a/i-twin2", corev1.ConditionUnknown)
		watched := func() bool { return cleaner.Memory().Watch["twin"].UID == cluster.UID(again.UID) }
		await.True(t, "the new Node is watched", watched)
		first := cloud.count()
		await.True(t, "a read of the cloud after that", func() bool { return cloud.count() > first || cleaner.Memory().Watch["twin"].Alive > 0 })
		if n, err := nodes.Get(t.Context(), "twin", metav1.GetOptions{}); err != nil || n.UID != again.UID {
			t.Errorf("the re-created Node: %v", err)
		}
	})
	for _, name := range []string{"live", "stopped", "foreign", "twin"} {
		if !exists(name) {
			t.Errorf("Node %s was deleted", name)
		}
	}
}

func (i *inventory) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.reads
}
