package nodecleaner

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// meter keeps the newest value of each metric.
type meter struct {
	mu     sync.Mutex
	counts map[string]int
	gauges map[string]float64
}

func newMeter() *meter { return &meter{counts: map[string]int{}, gauges: map[string]float64{}} }

func (m *meter) Count(name string, labels ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[name+" "+strings.Join(labels, " ")]++
}

func (m *meter) Gauge(name string, value float64, labels ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gauges[name+" "+strings.Join(labels, " ")] = value
}

func (m *meter) gauge(name string) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gauges[name]
}

func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// ccm renews the Lease of a cloud controller manager until stop.
func ccm(t *testing.T, client *fake.Clientset, skew time.Duration) (stop func()) {
	return ccmCalled(t, client, ccmLease, skew)
}

func ccmCalled(t *testing.T, client *fake.Clientset, name string, skew time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	holder := "ccm-0"
	leases := client.CoordinationV1().Leases(ccmNamespace)
	now := metav1.NewMicroTime(time.Now().Add(skew))
	l, err := leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for ctx.Err() == nil {
			sleep(ctx, 2*time.Second, nil)
			now := metav1.NewMicroTime(time.Now().Add(skew))
			l.Spec.RenewTime = &now
			_, _ = leases.Update(ctx, l, metav1.UpdateOptions{}) // ends with ctx
		}
	}()
	return cancel
}

// TestLoopLeavesNodesToACloudController (C1): while one renews its Lease, whatever its
// clock says, nothing is deleted; when it stops, the Node goes. A Lease that a removed
// one left behind holds nothing.
func TestLoopLeavesNodesToACloudController(t *testing.T) {
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c, nodes := twoNodes()
			var stop func()
			start := func(_ *Config, d *Deps) { stop = ccm(t, kubetest.Fake(d.Client), skew) }
			loop(t, c, start, nodes, func(client *fake.Clientset, s *Service) {
				wait(3 * time.Minute)
				if !has(t, client, "dead") || s.Explain("dead").Rule != "C1" {
					t.Errorf("skew %s: %+v", skew, s.Explain("dead"))
				}
				stop()
				wait(3 * time.Minute)
				if has(t, client, "dead") {
					t.Errorf("skew %s: the cloud controller is gone and the Node stays: %+v", skew, s.Explain("dead"))
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c, nodes := twoNodes()
		var stop func()
		loop(t, c, func(cfg *Config, d *Deps) {
			cfg.CloudController = CloudControllerIgnore
			stop = ccm(t, kubetest.Fake(d.Client), 0)
		}, nodes, func(client *fake.Clientset, _ *Service) {
			defer stop()
			if wait(2 * time.Minute); has(t, client, "dead") {
				t.Error("ignore is not heeded")
			}
		})
	})
	synctest.Test(t, func(t *testing.T) {
		c, nodes := twoNodes()
		loop(t, c, func(_ *Config, d *Deps) { ccm(t, kubetest.Fake(d.Client), -2*time.Hour)() }, nodes, func(client *fake.Clientset, _ *Service) {
			if wait(2 * time.Minute); has(t, client, "dead") {
				t.Error("a Lease that stands still holds a Node")
			}
		})
	})
}

// TestLoopKnowsCloudControllersByTheirNames (C1): those of distributions and of one for
// each region, too; with the rights of an older rbac.yaml the usual name alone; other
// controllers' Leases hold nothing.
func TestLoopKnowsCloudControllersByTheirNames(t *testing.T) {
	for _, c := range []struct {
		lease string
		old   bool // the Lease may be read, and not the list
		holds bool
	}{
		{lease: "k3s-cloud-controller-manager", holds: true}, {lease: "cloud-controller-manager-RegionOne", holds: true}, {lease: "ccm", holds: true},
		{lease: "kube-vip-cloud-controller"}, {lease: "kube-controller-manager"}, {lease: "accm"},
		{lease: "cloud-controller-manager", old: true, holds: true}, {lease: "k3s-cloud-controller-manager", old: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			two, nodes := twoNodes()
			loop(t, two, func(_ *Config, d *Deps) {
				client := kubetest.Fake(d.Client)
				t.Cleanup(ccmCalled(t, client, c.lease, 0))
				if c.old {
					client.PrependReactor("list", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
						return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", nil)
					})
				}
			}, nodes, func(client *fake.Clientset, s *Service) {
				wait(3 * time.Minute)
				if has(t, client, "dead") != c.holds || c.holds && (s.Explain("dead").Rule != "C1" || !strings.Contains(s.Explain("dead").Why, "/"+c.lease+")")) {
					t.Errorf("Lease %s, old rights %t: %+v", c.lease, c.old, s.Explain("dead"))
				}
			})
		})
	}
}

// TestLoopNoticesAShortOutage (B3): an interruption that begins and ends between two
// rounds still freezes.
func TestLoopNoticesAShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := twoNodes()
		m := newMeter()
		var blind sync.Map
		loop(t, c, func(_ *Config, d *Deps) {
			d.Metrics = m
			d.Blind = func() string {
				if _, ok := blind.Load("yes"); ok {
					return "the API server does not answer"
				}
				return ""
			}
		}, nodes, func(client *fake.Clientset, s *Service) {
			wait(30 * time.Second)
			blind.Store("yes", true)
			wait(3 * time.Second)
			blind.Delete("yes")
			wait(3 * time.Minute)
			if !has(t, client, "dead") || s.Explain("dead").Rule != "B3" || m.gauge("nodecleaner_breaker_open rule B3") != 1 || !strings.Contains(s.Status(), "B3: ") || len(s.Breakers()) != 1 || s.Breakers()[0].Rule != "B3" {
				t.Errorf("%+v; gauge %v; status %q", s.Explain("dead"), m.gauge("nodecleaner_breaker_open rule B3"), s.Status())
			}
			wait(4 * time.Minute)
			if has(t, client, "dead") || m.gauge("nodecleaner_breaker_open rule B3") != 0 || s.Status() != "" || len(s.Breakers()) > 0 {
				t.Errorf("the Node stays, or the breaker: %+v, status %q", s.Explain("dead"), s.Status())
			}
		})
	})
}

// TestReapStale (S1): it answers at once where there is no Node or a Ready one, and
// waits for the proof where there is a dead one.
func TestReapStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := twoNodes()
		loop(t, c, nil, nodes, func(client *fake.Clientset, s *Service) {
			if err := s.ReapStale(t.Context(), "none"); err != nil {
				t.Errorf("no such Node: %v", err)
			}
			var held *StaleError
			if err := s.ReapStale(t.Context(), "live"); !errors.As(err, &held) || held.Rule != "L0" {
				t.Errorf("a Ready Node: %v", err)
			}
			short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := s.ReapStale(short, "dead"); !errors.As(err, &held) || held.Rule != "G2" || !has(t, client, "dead") {
				t.Errorf("one sight: %v", err)
			}
			began := time.Now()
			long, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			if err := s.ReapStale(long, "dead"); err != nil || has(t, client, "dead") || time.Since(began) > 70*time.Second {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		})
	})
}

// TestLoopDetachesVolumesFirst (N4): the taint comes first, the Node goes once its last
// volume is detached.
func TestLoopDetachesVolumesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := twoNodes()
		pv := "pv-1"
		loop(t, c, func(_ *Config, d *Deps) {
			_, err := d.Client.StorageV1().VolumeAttachments().Create(t.Context(), &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va"},
				Spec: storagev1.VolumeAttachmentSpec{Attacher: "ebs.csi.aws.com", NodeName: "dead", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}, nodes, func(client *fake.Clientset, s *Service) {
			wait(3 * time.Minute)
			n, err := client.CoreV1().Nodes().Get(t.Context(), "dead", metav1.GetOptions{})
			if err != nil || len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != reaper.TaintOutOfService || s.Explain("dead").Rule != "N4" {
				t.Fatalf("%v %v %+v", n.Spec.Taints, err, s.Explain("dead"))
			}
			if err := client.StorageV1().VolumeAttachments().Delete(t.Context(), "va", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if wait(2 * time.Second); has(t, client, "dead") {
				t.Errorf("its volume is detached and it stays: %+v", s.Explain("dead"))
			}
		})
	})
}

// TestOwnMachineByItsID (E2): a Node that this machine has under another name.
func TestOwnMachineByItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := twoNodes()
		nodes[0].Status.NodeInfo.MachineID, nodes[0].Status.NodeInfo.BootID = "0f", "b1"
		loop(t, c, func(_ *Config, d *Deps) { d.Host = Host{MachineID: "0f", BootID: "b1"} }, nodes, func(client *fake.Clientset, s *Service) {
			wait(time.Hour)
			if !has(t, client, "dead") || s.Explain("dead").Rule != "E2" {
				t.Errorf("%+v", s.Explain("dead"))
			}
		})
	})
}

func restoring(client *fake.Clientset, lives bool) Restoring {
	return Restoring{Client: kubetest.Client(client), Lives: func(context.Context, string, string) (bool, string) { return lives, "its instance is gone" }}
}

// TestRestore: what an operator wrote comes back on a fresh Node or on the one that is
// there again; what kubelets, clouds and controllers wrote does not; the Node of a dead
// machine stays dead.
func TestRestore(t *testing.T) {
	dir := t.TempDir()
	s := &Service{deps: Deps{StateDir: dir}}
	old := apiNode("n", id(0), corev1.ConditionUnknown)
	old.Labels = map[string]string{"team": "blue", "kubernetes.io/hostname": "n", "topology.kubernetes.io/zone": "a"}
	old.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true", "csi.volume.kubernetes.io/nodeid": "{}", "autoscaler-agent/cordoned": "true"}
	old.Spec.Unschedulable = true // by the agent: it does not come back
	old.Spec.PodCIDRs = []string{"10.244.1.0/24"}
	old.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "blue", Effect: corev1.TaintEffectNoSchedule},
		{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}, {Key: reaper.TaintOutOfService, Effect: corev1.TaintEffectNoExecute}}
	if err := s.keep(old, reaper.Deletion{Rule: "G3", Why: "gone"}, noon); err != nil {
		t.Fatal(err)
	}
	kept, err := Manifests(dir)
	if err != nil || len(kept) != 1 || kept[0].Why != "G3: gone" || !kept[0].DeletedAt.Equal(noon) {
		t.Fatalf("%+v %v", kept, err)
	}
	t.Run("its machine is gone", func(t *testing.T) {
		client := fake.NewClientset()
		if _, err := Restore(t.Context(), restoring(client, false), kept[0]); err == nil || !strings.Contains(err.Error(), "its instance is gone") {
			t.Errorf("error %v", err)
		}
		r := restoring(client, false)
		r.Force, r.DryRun = true, true
		if done, err := Restore(t.Context(), r, kept[0]); err != nil || done.Action != "created" || has(t, client, "n") {
			t.Errorf("dry run: %+v %v", done, err)
		}
		r.DryRun = false
		if done, err := Restore(t.Context(), r, kept[0]); err != nil || done.Action != "created" || !has(t, client, "n") {
			t.Errorf("forced: %+v %v", done, err)
		}
	})
	t.Run("its machine lives", func(t *testing.T) {
		client := fake.NewClientset(kubeadmConfig("10.244.0.0/16"))
		done, err := Restore(t.Context(), restoring(client, true), kept[0])
		if err != nil || done.Action != "created" {
			t.Fatalf("%+v %v", done, err)
		}
		n, _ := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if n.Labels["team"] != "blue" || n.Labels["kubernetes.io/hostname"] != "n" || n.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"] != "true" || n.Annotations[annotationDeleted] != "" ||
			len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "dedicated" || n.Spec.Unschedulable || n.Spec.ProviderID != string(id(0)) || len(n.Spec.PodCIDRs) != 1 {
			t.Errorf("%+v %+v", n.ObjectMeta, n.Spec)
		}
	})
	t.Run("a Node is there again", func(t *testing.T) {
		again := apiNode("n", "aws:///z/i-new", corev1.ConditionTrue)
		again.UID = "new"
		again.Labels = map[string]string{"topology.kubernetes.io/zone": "b", "team": "none"}
		again.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}}
		client := fake.NewClientset(again)
		done, err := Restore(t.Context(), restoring(client, false), kept[0])
		if err != nil || done.Action != "updated" {
			t.Fatalf("%+v %v", done, err)
		}
		n, _ := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if n.Labels["team"] != "blue" || n.Labels["topology.kubernetes.io/zone"] != "b" || n.Annotations["csi.volume.kubernetes.io/nodeid"] != "" ||
			len(n.Spec.Taints) != 2 || n.Spec.ProviderID != "aws:///z/i-new" || n.Spec.Unschedulable {
			t.Errorf("%+v %+v", n.ObjectMeta, n.Spec)
		}
		if done, err := Restore(t.Context(), restoring(client, false), kept[0]); err != nil || done.Action != "unchanged" {
			t.Errorf("a second time: %+v %v", done, err)
		}
	})
	t.Run("it was never deleted", func(t *testing.T) {
		if _, err := Restore(t.Context(), restoring(fake.NewClientset(old), true), kept[0]); err == nil {
			t.Error("no error")
		}
	})
	t.Run("forbidden", func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("create", "nodes", forbid)
		if _, err := Restore(t.Context(), restoring(client, true), kept[0]); !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
	})
}
