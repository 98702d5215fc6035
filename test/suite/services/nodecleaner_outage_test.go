package services

import (
	"os"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// TestReaperOutage plays the API server's outage with the product's own times: it stands
// still for AUTOSCALER_TEST_PAUSE (make outage: three minutes), every Node is Unknown when
// it is back, and the reaper has its defaults (two sights a minute apart, a freeze of five
// minutes). That takes a quarter of an hour, so that make test-all plays it scaled.
func TestReaperOutage(t *testing.T) {
	text := os.Getenv("AUTOSCALER_TEST_PAUSE")
	if text == "" {
		t.Skip("make outage plays it (AUTOSCALER_TEST_PAUSE); TestServices plays it scaled")
	}
	p := pace{reads: 2 * time.Second, patience: 15 * time.Minute}
	var err error
	if p.pause, err = time.ParseDuration(text); err != nil {
		t.Fatal(err)
	}
	if err := envconfig.Process("autoscaler_test_defaults", &p.Config); err != nil { // no such variables: the defaults
		t.Fatal(err)
	}
	t.Logf("the reaper's own times: %+v", p.Config)
	// Machines here are Node objects: nobody but the test calls them silent.
	cp := controlplane.ForTest(t, controlplane.Options{Fast: true, NodeMonitorGrace: time.Hour})
	r := newRanch(t, cp, 12, p)
	r.looks(t, 3)
	r.paused(t)
	for name := range r.nodes {
		if i, _ := r.cloud.Instance(r.nodes[name]); i.State == "running" && !r.exists(name) {
			t.Errorf("Node %s is gone and its instance is not", name)
		}
	}
}
