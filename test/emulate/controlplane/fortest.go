package controlplane

import (
	"context"
	"os"
	"testing"
	"time"
)

// ForTest starts a control plane for one test and stops it when the test is over.
// A first build is announced on stderr, because go test keeps a test's own log back
// until it ends. When the test fails, the last lines of every part are logged.
func ForTest(t testing.TB, opts Options) *ControlPlane {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	if opts.Bin.Dir == "" {
		bin, err := Binaries(ctx, os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		opts.Bin = bin
	}
	if opts.Log == nil {
		opts.Log = t.Output()
	}
	cp, err := Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range Parts() {
				t.Logf("last lines of %s (%s):\n%s", name, cp.State(name), tail(cp.Log(name), 15))
			}
		}
		if err := cp.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return cp
}
