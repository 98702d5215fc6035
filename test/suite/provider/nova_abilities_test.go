package provider_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

// The abilities of the suite's OpenStack beyond providertest.World.
var _ interface {
	providertest.Forms
	providertest.FailLaunches
	providertest.LimitCapacity
	providertest.RefuseOneDelete
	providertest.ExpireAfter
	providertest.Lag
	providertest.Hang
	providertest.LoseAnswer
	providertest.Furnish
	providertest.ChangeTemplate
	providertest.RotateJoin
	providertest.ChangeUserData
} = (*novaWorld)(nil)

// Forms: of cloud controller managers without and with the region, of Cluster API, in the
// writing of old firmware, and as a machine ID.
func (w *novaWorld) Forms(id cluster.InstanceID) []string {
	uuid := shortID(id)
	return []string{"openstack:///" + uuid, "openstack://RegionOne/" + uuid, "openstack://" + uuid, "openstack:///" + strings.ToUpper(uuid), "openstack:///" + strings.ReplaceAll(uuid, "-", "")}
}

func (w *novaWorld) FailLaunches(_ testing.TB, on bool) {
	for _, r := range w.regions() {
		r.FailBuilds("")
		if on {
			r.FailBuilds("Build of instance aborted: Image " + openstack.ImageID + " is not active.")
		}
	}
}

func (w *novaWorld) LimitCapacity(_ testing.TB, on bool) {
	for _, r := range w.regions() {
		r.Space()
		if on {
			r.NoValidHost("*", "*")
		}
	}
}

func (w *novaWorld) RefuseOneDelete(testing.TB) {
	w.fault("refuse one", true, openstack.Fault{Action: "DELETE /servers/{id}", Kind: openstack.Forbidden, Times: 1})
}

// ExpireAfter counts logins too; Expire(false) takes it back.
func (w *novaWorld) ExpireAfter(_ testing.TB, calls int) {
	w.fault("expire", true, openstack.Fault{Kind: openstack.Unauthorized, After: calls})
}

func (w *novaWorld) Lag(_ testing.TB, on bool) {
	for _, r := range w.regions() {
		r.Freeze(on)
	}
}

func (w *novaWorld) Hang(_ testing.TB, on bool) {
	w.fault("hang", on, openstack.Fault{Kind: openstack.Slow, Delay: time.Hour})
}

func (w *novaWorld) LoseAnswer(testing.TB) {
	w.fault("lose made", true, openstack.Fault{Action: "POST /servers", Kind: openstack.AnswerLost, Times: 1})
	w.fault("lose deleted", true, openstack.Fault{Action: "DELETE /servers/{id}", Kind: openstack.AnswerLost, Times: 1})
}

func (w *novaWorld) change(field string, value any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups[string(providertest.Workers)][field] = value
}

func (w *novaWorld) Furnish(testing.TB) {
	taint := providertest.FurnishTaint
	w.change("labels", map[string]string{providertest.FurnishLabel[0]: providertest.FurnishLabel[1]})
	w.change("taints", []string{taint.Key + "=" + taint.Value + ":" + taint.Effect})
}

func (w *novaWorld) ChangeTemplate(testing.TB) { w.change("flavor", "m1.xlarge") }

// RotateJoin: the file gets a token of its own, as userdata render --shared-token writes it.
func (w *novaWorld) RotateJoin(t testing.TB) {
	t.Helper()
	w.writeScript(t, "#!/bin/sh\nJOIN_TOKEN='zyxwvu.fedcba9876543210'\n")
}

func (w *novaWorld) ChangeUserData(t testing.TB) {
	t.Helper()
	w.writeScript(t, "#!/bin/sh\nJOIN_TOKEN='{{join token}}'\ntrue\n")
}

func (w *novaWorld) writeScript(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(w.script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
