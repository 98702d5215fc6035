package openstack_test

import (
	"context"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/providertest"
)

// The abilities of real services beyond providertest.World.
var _ interface {
	providertest.Forms
	providertest.FailLaunches
	providertest.Furnish
	providertest.ChangeTemplate
} = (*world)(nil)

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
