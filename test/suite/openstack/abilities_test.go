package openstack_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/openstack"
)

// The abilities of real services beyond providertest.World.
var _ interface {
	providertest.Forms
	providertest.FailLaunches
	providertest.Furnish
	providertest.ChangeTemplate
	providertest.RotateJoin
	providertest.ChangeUserData
	providertest.ExpireAfter
	providertest.Hang
	providertest.LoseAnswer
} = (*world)(nil)

// trouble is what the front does to both providers' requests.
type trouble struct {
	front *openstack.Front
	stops map[string]func()
}

// fault lets one thing be in the way at a time, and nothing after the case.
func (w *trouble) fault(t testing.TB, name string, on bool, f openstack.Fault) {
	if stop := w.stops[name]; stop != nil {
		stop()
	}
	if !on {
		return
	}
	if w.stops == nil {
		w.stops = map[string]func(){}
	}
	w.stops[name] = w.front.Inject(f)
	t.Cleanup(w.stops[name])
}

func (w *trouble) throttle(t testing.TB, on bool) {
	w.fault(t, "throttle", on, openstack.Fault{Kind: openstack.Throttle})
}

func (w *trouble) Hang(t testing.TB, on bool) {
	w.fault(t, "hang", on, openstack.Fault{Kind: openstack.Hang})
}

// expireAfter refuses tokens and logins.
func (w *trouble) expireAfter(t testing.TB, calls int) {
	w.fault(t, "expire", true, openstack.Fault{Kind: openstack.Unauthorized, After: calls})
}

// expire takes back what expireAfter did, or lets the credentials end for real.
func (w *trouble) expire(t testing.TB, s *openstack.Stack, on bool) {
	if stop := w.stops["expire"]; stop != nil && !on {
		stop()
		delete(w.stops, "expire")
		return
	}
	if err := s.EnableDemo(context.Background(), !on); err != nil {
		t.Fatal(err)
	}
}

func (w *world) ExpireAfter(t testing.TB, calls int) { w.expireAfter(t, calls) }

// LoseAnswer lets the next server be made, and the next be deleted, and nobody hear of it.
func (w *world) LoseAnswer(t testing.TB) {
	for _, method := range []string{"POST", "DELETE"} {
		w.fault(t, "lose "+method, true, openstack.Fault{Kind: openstack.LoseAnswer, Times: 1, Match: func(r *http.Request) bool {
			return r.Method == method && strings.HasPrefix(r.URL.Path, "/nova/v2.1/servers")
		}})
	}
}

func (w *world) Forms(id cluster.InstanceID) []string {
	uuid := strings.TrimPrefix(string(id), "openstack:///")
	return []string{string(id), "openstack://RegionOne/" + uuid, "openstack://" + uuid, "openstack:///" + strings.ToUpper(uuid), "openstack:///" + strings.ReplaceAll(uuid, "-", "")}
}

// play lets something be in the stack's way, and takes it back at the end of the case.
func play(t testing.TB, on bool, set func(on bool) error) {
	t.Helper()
	if err := set(on); err != nil {
		t.Fatal(err)
	}
	if on {
		t.Cleanup(func() { _ = set(false) })
	}
}

func (w *world) FailLaunches(t testing.TB, on bool) {
	play(t, on, func(on bool) error { return w.HideImage(context.Background(), on) })
}

func (w *world) change(field string, value any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups[string(providertest.Workers)][field] = value
}

func (w *world) Furnish(testing.TB) {
	taint := providertest.FurnishTaint
	w.change("labels", map[string]string{providertest.FurnishLabel[0]: providertest.FurnishLabel[1]})
	w.change("taints", []string{taint.Key + "=" + taint.Value + ":" + taint.Effect})
}

func (w *world) ChangeTemplate(testing.TB) { w.change("flavor", "m1.medium") }

// RotateJoin gives Workers the same user data with another token.
func (w *world) RotateJoin(t testing.TB) {
	t.Helper()
	w.userData(t, "#!/bin/sh\n# zyxwvu.fedcba9876543210\n")
}

func (w *world) ChangeUserData(t testing.TB) {
	t.Helper()
	w.userData(t, "#!/bin/sh\n# abcdef.0123456789abcdef\ntrue\n")
}

// userData gives Workers a file of their own.
func (w *world) userData(t testing.TB, text string) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "own.sh")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.change("userdata", script)
}
