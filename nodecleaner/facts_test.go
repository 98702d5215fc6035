package nodecleaner

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// reported is a Node as a kubelet writes it.
func reported(name string, id cluster.InstanceID, info corev1.NodeSystemInfo) *corev1.Node {
	n := apiNode(name, id, corev1.ConditionTrue)
	n.Status.NodeInfo = info
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.9"}}
	n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	return n
}

// TestEveryFactIsFed: what package reaper reads of a Node comes from the API object, through the informer's own stripping; a
// field of the Input that no round of the service fills would be a rule that never speaks.
func TestEveryFactIsFed(t *testing.T) {
	read := selectors(t, "reaper")
	full := reported("n", id(0), corev1.NodeSystemInfo{SystemUUID: "s", MachineID: "m", BootID: "b"})
	now := metav1.Now()
	full.DeletionTimestamp, full.Spec.Taints = &now, []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}
	full.Labels = map[string]string{cluster.LabelControlPlane: "", corev1.LabelTopologyZone: "z"}
	full.Annotations = map[string]string{cluster.AnnotationGroup: "g", cluster.AnnotationBoot: "b", cluster.AnnotationKeep: ""}
	stripped, err := convert.Strip(full)
	if err != nil {
		t.Fatal(err)
	}
	n := toNode(stripped.(*corev1.Node))
	for _, key := range []string{cluster.AnnotationGroup, cluster.AnnotationBoot, cluster.AnnotationKeep} {
		if n.Annotations[key] == "" {
			t.Errorf("annotation %s is lost", key)
		}
	}
	v := reflect.ValueOf(n)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; read[name] && v.Field(i).IsZero() {
			t.Errorf("package reaper reads %s of a Node, and facts.go does not fill it", name)
		}
	}

	filled := map[string]bool{}
	see := func(s *Service) {
		s.mu.Lock()
		defer s.mu.Unlock()
		v := reflect.ValueOf(s.lastIn)
		for i := range v.NumField() {
			f := v.Field(i)
			filled[v.Type().Field(i).Name] = filled[v.Type().Field(i).Name] || !f.IsZero() && (f.Kind() != reflect.Map && f.Kind() != reflect.Slice || f.Len() > 0)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c, nodes := twoNodes()
		var mu sync.Mutex
		blind := ""
		loop(t, c, func(_ *Config, d *Deps) {
			d.OwnNode = "live"
			d.Sent = func() []cluster.InstanceID { return []cluster.InstanceID{id(0)} }
			d.Certified = func() map[cluster.NodeName]time.Time { return map[cluster.NodeName]time.Time{"live": time.Now()} }
			d.Blind = func() string { mu.Lock(); defer mu.Unlock(); return blind }
			volume := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: "dead"}}
			if _, err := kubetest.Fake(d.Client).StorageV1().VolumeAttachments().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, nodes, func(client *fake.Clientset, s *Service) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_ = s.ReapStale(ctx, "dead") // it is wished for, and not deleted yet
			defer ccm(t, client, 0)()
			for range 700 { // two rounds are 200 ms apart at least
				wait(100 * time.Millisecond)
				see(s)
			}
			mu.Lock()
			blind = "no answer"
			mu.Unlock()
			c.mu.Lock()
			c.broken = apierrors.NewInternalError(os.ErrClosed)
			c.mu.Unlock()
			wait(time.Minute)
			see(s)
		})
	})
	in := reflect.TypeFor[reaper.Input]()
	for i := range in.NumField() {
		if name := in.Field(i).Name; !filled[name] {
			t.Errorf("no round of the service fills Input.%s", name)
		}
	}
}

// selectors are the names after a dot in the product files of a package.
func selectors(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	out := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				out[s.Sel.Name] = true
			}
			return true
		})
	}
	return out
}

// TestLoopAnotherMachineUnderTheNode (E7): a machine gets the name and the address of one that has ended, and its kubelet takes
// the Node that is still there. Each witness alone keeps the Node when the new machine falls silent; without any the Node goes.
func TestLoopAnotherMachineUnderTheNode(t *testing.T) {
	was := corev1.NodeSystemInfo{SystemUUID: "EC2A0000-0000-0000-0000-000000000001", MachineID: "m1", BootID: "b1"}
	for name, c := range map[string]struct {
		now       corev1.NodeSystemInfo
		works     time.Duration // of the new machine, until it is silent
		certified bool
		why       string // "": the Node goes
	}{
		"no other machine":               {now: was},
		"the boot ID":                    {now: corev1.NodeSystemInfo{SystemUUID: was.SystemUUID, MachineID: "m1", BootID: "b2"}, works: 80 * time.Second, why: "the Node's boot ID is b2"},
		"the boot ID, for an hour":       {now: corev1.NodeSystemInfo{SystemUUID: was.SystemUUID, MachineID: "m1", BootID: "b2"}, works: time.Hour, why: "the Node's boot ID is b2"},
		"the machine ID":                 {now: corev1.NodeSystemInfo{SystemUUID: was.SystemUUID, MachineID: "m2", BootID: "b1"}, works: 80 * time.Second, why: "the Node's machine ID is m2"},
		"the system UUID":                {now: corev1.NodeSystemInfo{SystemUUID: "ec2b", MachineID: "m1", BootID: "b1"}, works: 80 * time.Second, why: "the Node's system UUID is ec2b"},
		"nothing but its heartbeats":     {now: was, works: time.Hour, why: "a kubelet reported at"},
		"nothing but its certificate":    {now: was, works: 6 * time.Minute, certified: true, why: "got a client certificate"},
		"nothing, and it worked briefly": {now: was, works: 80 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group, nodes := twoNodes()
				first := &group.group.Instances[0]
				*first = cluster.Instance{ID: id(0), Phase: cluster.PhaseRunning, Member: true, NodeNames: []string{"worker"}, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.9")}}
				nodes[0] = reported("worker", id(0), was)
				var mu sync.Mutex
				certified := map[cluster.NodeName]time.Time{}
				loop(t, group, func(_ *Config, d *Deps) {
					d.Certified = func() map[cluster.NodeName]time.Time { mu.Lock(); defer mu.Unlock(); return certified }
				}, nodes, func(client *fake.Clientset, s *Service) {
					report := func(info corev1.NodeSystemInfo, ready corev1.ConditionStatus) {
						n, err := client.CoreV1().Nodes().Get(t.Context(), "worker", metav1.GetOptions{})
						if err != nil {
							t.Fatal(err)
						}
						n.Status.NodeInfo = info
						if r := &n.Status.Conditions[0]; r.Status != ready {
							r.Status, r.LastTransitionTime = ready, metav1.Now()
						}
						if ready == corev1.ConditionTrue {
							n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
						}
						if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
							t.Fatal(err)
						}
					}
					wait(3 * time.Minute)
					group.mu.Lock()
					next := *first
					next.ID, next.Created, first.Phase, first.Member = id(2), time.Now(), cluster.PhaseGone, false
					if c.works > 0 {
						group.group.Instances = append(group.group.Instances, next)
					}
					group.mu.Unlock()
					wait(10 * time.Second)
					for began := time.Now(); time.Since(began) < c.works; wait(min(time.Minute, c.works-time.Since(began))) {
						_, _ = group.Groups(t.Context(), 0) // the scaler's
						if time.Since(began)%(5*time.Minute) == 0 {
							report(c.now, corev1.ConditionTrue)
						}
					}
					if c.certified {
						mu.Lock()
						certified = map[cluster.NodeName]time.Time{"worker": time.Now()}
						mu.Unlock()
					}
					report(c.now, corev1.ConditionUnknown)
					wait(30 * time.Minute)
					if v := s.Explain("worker"); has(t, client, "worker") != (c.why != "") || c.why != "" && (v.Rule != "E7" || !strings.Contains(v.Why, c.why)) {
						t.Errorf("there %t: %+v", has(t, client, "worker"), v)
					}
				})
			})
		})
	}
}

// TestLoopRebootIsNoOtherMachine (E7): a machine that boots again while its instance runs is known by its new boot ID, with a
// system UUID and without; an agent that lost its ledger knows it by the annotation.
func TestLoopRebootIsNoOtherMachine(t *testing.T) {
	for _, uuid := range []string{"u", ""} {
		for _, lost := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c, nodes := twoNodes()
				c.group.Instances[0] = cluster.Instance{ID: id(0), Phase: cluster.PhaseRunning, Member: true}
				nodes[0] = reported("dead", id(0), corev1.NodeSystemInfo{SystemUUID: uuid, BootID: "b1"})
				loop(t, c, nil, nodes, func(client *fake.Clientset, s *Service) {
					change := func(f func(*corev1.Node)) {
						n, err := client.CoreV1().Nodes().Get(t.Context(), "dead", metav1.GetOptions{})
						if err != nil {
							t.Fatal(err)
						}
						f(n)
						if _, err := client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
							t.Fatal(err)
						}
					}
					wait(2 * time.Minute)
					change(func(n *corev1.Node) { n.Status.NodeInfo.BootID = "b2" })
					for range 4 { // the scaler's reads of the cloud
						wait(time.Minute)
						_, _ = c.Groups(t.Context(), 0)
					}
					if n, err := client.CoreV1().Nodes().Get(t.Context(), "dead", metav1.GetOptions{}); err != nil || n.Annotations[cluster.AnnotationBoot] != "b2" {
						t.Errorf("UUID %q: annotations %v, %v", uuid, n.Annotations, err)
					}
					if lost {
						s.mu.Lock()
						s.memory = reaper.Memory{}
						s.mu.Unlock()
					}
					c.mu.Lock()
					c.group.Instances[0].Phase, c.group.Instances[0].Member = cluster.PhaseGone, false
					c.mu.Unlock()
					change(func(n *corev1.Node) {
						n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, metav1.Now()
					})
					if wait(20 * time.Minute); has(t, client, "dead") {
						t.Errorf("UUID %q, lost %t: %+v", uuid, lost, s.Explain("dead"))
					}
				})
			})
		}
	}
}
