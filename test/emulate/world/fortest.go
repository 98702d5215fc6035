package world

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// ForTest starts a world of fast machines for one test, and returns it with a binary of the agent. What opts leaves out of
// directory, progress and paces is filled in. The world is stopped when the test is over; one that failed shows what
// the agent that was started last, the clouds and the machines said.
func ForTest(t testing.TB, opts Options) (w *World, binary string) {
	t.Helper()
	opts.Dir = cmp.Or(opts.Dir, t.TempDir())
	if opts.Progress == nil {
		opts.Progress = t.Output()
	}
	opts.NodeMonitorGrace, opts.NodeLeaseSeconds = cmp.Or(opts.NodeMonitorGrace, 6*time.Second), cmp.Or(opts.NodeLeaseSeconds, 8)
	opts.Cloud.Region = cmp.Or(opts.Cloud.Region, "eu-west-1")
	if opts.Pace == (Pace{}) && opts.Cloud.LaunchDelay == 0 {
		opts.Pace = Pace{Launch: 300 * time.Millisecond, Boot: 500 * time.Millisecond, Terminate: 500 * time.Millisecond}
	}
	w, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if t.Failed() {
			w.tell(t)
		}
		if err := w.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	if binary, err = w.BuildAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w, binary
}

func (w *World) tell(t testing.TB) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.processes); n > 0 {
		t.Logf("the agent's last lines:\n%s", w.processes[n-1].Tail(60))
	}
	for _, c := range w.Clouds {
		t.Logf("the cloud:\n%s", c)
	}
	machines, _ := os.ReadFile(filepath.Join(w.Dir, "machines.log"))
	t.Logf("the machines:\n%s", machines[max(0, len(machines)-4000):])
}
