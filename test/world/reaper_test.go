package world

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
)

// herd is a world of machines without pods, and an agent with its own times.
type herd struct {
	*testing.T
	*World
}

func withHerd(t *testing.T, machines int, do func(herd)) {
	inBubble(t, Options{Seed: 1, Groups: []Group{{"workers", "m5.xlarge", machines, machines + 1}}}, func(h herd) {
		h.Start()
		h.until("all machines are Ready", 10*time.Minute, func() bool { return len(h.ready()) == machines })
		time.Sleep(70 * time.Minute) // from this age on an absence is believed
		do(h)
	})
}

// inBubble makes a world that is not started yet, and demands at its end that no invariant was violated.
func inBubble(t *testing.T, o Options, do func(herd)) {
	o.Env, o.Dir = load(t), dirOf(t)
	synctest.Test(t, func(t *testing.T) {
		w, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			w.Close()
			if list := w.watch.violations(); len(list) > 0 {
				t.Error(list)
			}
			if t.Failed() {
				t.Log("\n" + w.Story(300))
			}
		}()
		do(herd{t, w})
	})
}

func (h herd) until(what string, within time.Duration, is func() bool) {
	h.Helper()
	for began := time.Now(); !is(); time.Sleep(time.Second) {
		if time.Since(began) > within {
			h.Fatalf("not within %s: %s", within, what)
		}
	}
}

// ready are the machines whose Nodes are Ready.
func (h herd) ready() (out []*machine) {
	for _, m := range h.fleet.list() {
		h.fleet.mu.Lock()
		if m.node && m.ready && !m.sick {
			out = append(out, m)
		}
		h.fleet.mu.Unlock()
	}
	return out
}

// node is the Node of a machine; nil: it is gone.
func (h herd) node(m *machine) *corev1.Node {
	if n := apiserver.Get[*corev1.Node](h.API, "/nodes", "", m.name); n != nil && n.Spec.ProviderID == m.providerID() {
		return n
	}
	return nil
}

func (h herd) taint(m *machine, key string, on bool) {
	next := h.node(m).DeepCopy()
	next.Spec.Taints = slices.DeleteFunc(next.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	if on {
		next.Spec.Taints = append(next.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	if err := h.API.Update("/nodes", next, ""); err != nil {
		h.Fatal(err)
	}
}

func (h herd) tainted(m *machine, key string) bool {
	n := h.node(m)
	return n != nil && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// dies ends the machine that is the oldest.
func (h herd) dies() *machine {
	m := h.ready()[0]
	if err := h.Cloud.TerminateInstance(m.ID); err != nil {
		h.Fatal(err)
	}
	return m
}

func (h herd) goes(m *machine) {
	h.Helper()
	h.until("Node "+m.name+" of "+m.ID+" is gone", 25*time.Minute, func() bool { return h.node(m) == nil })
	h.until("another machine is in its place", 25*time.Minute, func() bool { return len(h.ready()) >= h.Groups[0].Min-1 }) // one is silent
}

// lies has somebody else answer for the cloud.
func (h herd) lies(answers http.Handler) (end func()) {
	h.instead.Store(&answers)
	return func() { h.instead.Store(nil) }
}

// stateless takes the state out of each instance, as AWS has been seen to answer.
func (h herd) stateless() http.Handler {
	state := regexp.MustCompile(`(?s)<instanceState>.*?</instanceState>`)
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		h.Cloud.ServeHTTP(rec, r)
		body := state.ReplaceAll(rec.Body.Bytes(), nil)
		rw.Header().Set("Content-Length", strconv.Itoa(len(body)))
		rw.WriteHeader(rec.Code)
		_, _ = bytes.NewReader(body).WriteTo(rw)
	})
}

// TestReaper: whatever the cloud answers, no Node is deleted whose machine lives, and each goes whose machine is gone once the
// fault is over.
func TestReaper(t *testing.T) {
	inject := func(f aws.Fault) func(herd) func() {
		return func(h herd) func() {
			stop := h.Cloud.Inject(f)
			return func() { stop() }
		}
	}
	for name, begin := range map[string]func(herd) (end func()){
		"empty list of instances":    inject(aws.Fault{Service: "ec2", Action: "DescribeInstances", Kind: aws.EmptyList}),
		"empty list of groups":       inject(aws.Fault{Service: "autoscaling", Action: "DescribeAutoScalingGroups", Kind: aws.EmptyList}),
		"half a list":                inject(aws.Fault{Action: "Describe*", Kind: aws.ShortList}),
		"half a list of instances":   inject(aws.Fault{Service: "ec2", Kind: aws.ShortList}),
		"partial page":               inject(aws.Fault{Action: "Describe*", Kind: aws.PartialPage}),
		"forbidden":                  inject(aws.Fault{Kind: aws.Forbidden}),
		"partitioned from the cloud": inject(aws.Fault{Kind: aws.ConnectionReset}),
		"no states":                  func(h herd) func() { return h.lies(h.stateless()) },
		"old reads": func(h herd) func() {
			h.Cloud.StaleReads(time.Hour)
			return func() { h.Cloud.StaleReads(0) }
		},
		"wrong account": func(h herd) func() { // its group has the name of ours, and is complete
			other, err := aws.New(aws.Options{Seed: h.Seed | 1, AccountID: "222222222222", LaunchDelay: time.Second, BootDelay: time.Second, Unlistened: true})
			if err == nil {
				other.PutLaunchTemplate(aws.LaunchTemplate{Name: "workers", InstanceType: "m5.xlarge", UserData: "#!/bin/sh\n"})
				err = other.PutGroup(h.groupOf(h.Groups[0], 8))
			}
			if err != nil {
				h.Fatal(err)
			}
			time.Sleep(time.Minute)
			end := h.lies(other)
			return func() { end(); other.Close() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHerd(t, 8, func(h herd) {
				end := begin(h)
				dead, all := h.dies(), h.ready()
				silent := all[len(all)-1]
				h.fleet.sicken(silent, time.Hour)
				time.Sleep(25 * time.Minute) // longer than the grace of a Node whose machine is not listed
				end()
				h.goes(dead)
				if h.node(silent) == nil {
					t.Error("the Node of a machine is gone whose kubelet is silent")
				}
			})
		})
	}
}

// TestReaperOdd: what looks dead and is not, and what is dead and does not look so.
func TestReaperOdd(t *testing.T) {
	withHerd(t, 8, func(h herd) {
		all := h.ready()
		stopped, reboots, marked := all[1], all[2], all[3]
		if err := h.Cloud.StopInstance(stopped.ID); err != nil {
			t.Fatal(err)
		}
		if err := h.Cloud.Reboot(reboots.ID); err != nil {
			t.Fatal(err)
		}
		h.until("the Node of the stopped machine is marked", 10*time.Minute, func() bool { return h.tainted(stopped, "node.cloudprovider.kubernetes.io/shutdown") })
		if h.node(reboots) == nil {
			t.Error("the Node of a machine that reboots is gone")
		}
		// A restarted Cluster Autoscaler takes its taints from all Nodes, and the machine leaves no trace.
		h.taint(marked, cluster.TaintToBeDeleted, true)
		time.Sleep(time.Minute)
		if err := h.Cloud.Vanish(marked.ID); err != nil {
			t.Fatal(err)
		}
		h.fleet.sicken(marked, time.Hour)
		h.taint(marked, cluster.TaintToBeDeleted, false)
		h.until("the Node of a machine without a trace is gone", 25*time.Minute, func() bool { return h.node(marked) == nil })
		// The Node of an ended machine is put out of service, and goes when its last volume is detached.
		volume := "pv"
		attached := h.ready()[0]
		if err := h.API.Create("storage.k8s.io/volumeattachments", &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va"},
			Spec: storagev1.VolumeAttachmentSpec{Attacher: "test.example.net", NodeName: attached.name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}}); err != nil {
			t.Fatal(err)
		}
		h.dies()
		h.until("it is out of service", 10*time.Minute, func() bool { return h.tainted(attached, corev1.TaintNodeOutOfService) })
		time.Sleep(2 * time.Minute)
		h.watch.mu.Lock()
		rule := h.watch.kept[attached.name]
		h.watch.mu.Unlock()
		if h.node(attached) == nil || rule != "N4" {
			t.Errorf("the Node does not wait for its volume, but for rule %q", rule)
		}
		if err := h.API.Delete("storage.k8s.io/volumeattachments", "", "va", nil); err != nil {
			t.Fatal(err)
		}
		h.until("its Node is gone", 25*time.Minute, func() bool { return h.node(attached) == nil })
	})
}

// TestReaperOutage: the API server stands still for three minutes, every Node is Unknown when it is back, and one machine has died
// meanwhile. No Node is deleted while the agent doubts what it sees; then the dead one goes.
func TestReaperOutage(t *testing.T) {
	withHerd(t, 8, func(h herd) {
		all := h.ready()
		h.mu.Lock()
		h.begin(Fault{Kind: "api-cut", N: 1, For: 3 * time.Minute, Agent: -1})
		h.mu.Unlock()
		dead := h.dies()
		for _, m := range all[1:] {
			h.fleet.sicken(m, 5*time.Minute)
		}
		time.Sleep(3 * time.Minute)
		for range 4 {
			time.Sleep(time.Minute)
			if h.node(dead) == nil {
				t.Fatal("a Node was deleted within five minutes after the outage")
			}
		}
		h.goes(dead)
		for _, m := range all[1:] {
			if h.node(m) == nil {
				t.Errorf("Node %s is gone, and its machine lives", m.name)
			}
		}
		if !strings.Contains(h.Story(20000), "rule=B3") {
			t.Error("no line tells that deletions wait after an outage (B3)")
		}
	})
}
