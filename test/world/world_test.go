package world

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
)

// load is the configuration that every agent of a test has.
func load(t testing.TB) config.Config {
	t.Helper()
	klog.SetLogger(klog.Logger{})
	for name, value := range Environ() {
		t.Setenv(name, value)
	}
	// The parts of a world take turns: a second thread would only be woken and put to sleep. Little lives, and much is garbage.
	threads, percent := runtime.GOMAXPROCS(1), debug.SetGCPercent(400)
	t.Cleanup(func() { runtime.GOMAXPROCS(threads); debug.SetGCPercent(percent) })
	hangups := make(chan os.Signal, 1) // the runtime's own part of it must not begin in a bubble
	signal.Notify(hangups, syscall.SIGHUP)
	signal.Stop(hangups)
	cfg, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// dirOf is a directory in memory where there is one: each round of an agent syncs its file.
func dirOf(t testing.TB) string {
	if dir, err := os.MkdirTemp("/dev/shm", "world"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

// running counts the pods that run.
func (w *World) running() (n int) {
	for _, p := range apiserver.List[*corev1.Pod](w.API, "/pods", "") {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// workers are the names of the Nodes that are machines.
func (w *World) workers() (out []string) {
	for _, n := range apiserver.List[*corev1.Node](w.API, "/nodes", "") {
		if n.Spec.ProviderID != "" {
			out = append(out, n.Name)
		}
	}
	return out
}

// TestTrickle: 300 pods of ten workloads that come one after the other within ten seconds are two orders at most, of exactly the
// machines that hold them.
func TestTrickle(t *testing.T) {
	cfg, dir := load(t), dirOf(t)
	synctest.Test(t, func(t *testing.T) {
		w, err := New(Options{Dir: dir, Seed: 1, Env: cfg, Groups: []Group{{"workers", "m5.xlarge", 0, 60}}})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		w.Start()
		for i := range 10 {
			time.Sleep(time.Second)
			if err := w.PutWorkload(Workload{Name: fmt.Sprint("web-", i), Replicas: 30, MilliCPU: 500, Memory: 512 << 20}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(4 * time.Minute)
		var orders []int
		for _, a := range w.watch.acts {
			orders = append(orders, a.to)
		}
		if n, nodes := w.running(), w.workers(); n != 300 || len(nodes) != 43 || len(orders) > 2 {
			t.Errorf("%d pods run on %d machines of the orders %v, want 300 on 43 of at most two\n%s", n, len(nodes), orders, w.Story(100))
		}
	})
}

// TestStory: 30 pods come, machines are bought and join, the pods run; they go, and so do the machines and their Nodes. With one
// agent and with three.
func TestStory(t *testing.T) {
	for name, agents := range map[string]int{"one agent": 1, "three agents": 3} {
		t.Run(name, func(t *testing.T) {
			cfg, dir := load(t), dirOf(t)
			synctest.Test(t, func(t *testing.T) {
				w, err := New(Options{Dir: dir, Seed: 1, Agents: agents, Env: cfg, Groups: []Group{{"workers", "m5.xlarge", 0, 20}}})
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					w.Close()
					if t.Failed() {
						t.Log("\n" + w.Story(300))
					}
				}()
				w.Start()
				time.Sleep(time.Minute)
				if err := w.PutWorkload(Workload{Name: "web", Replicas: 30, MilliCPU: 500, Memory: 512 << 20}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Minute)
				if n, nodes := w.running(), w.workers(); n != 30 || len(nodes) != 5 { // 7 of them fit on 3.8 cores
					t.Errorf("%d pods run on %d machines, want 30 on 5", n, len(nodes))
				}
				w.Scale("web", 0)
				time.Sleep(20 * time.Minute)
				if nodes, left := w.workers(), w.fleet.list(); len(nodes)+len(left) > 0 {
					t.Errorf("Nodes %s and %d machines are left", strings.Join(nodes, " "), len(left))
				}
			})
		})
	}
}
