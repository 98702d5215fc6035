package asg

import (
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestOptionsByTags reads every autoscaling-options tag of Cluster Autoscaler.
func TestOptionsByTags(t *testing.T) {
	tag := func(name, value string) map[string]string { return map[string]string{tagOptions + name: value} }
	for name, c := range map[string]struct{ good, bad string }{
		"scaledownutilizationthreshold":    {"0.7", "70"},
		"scaledowngpuutilizationthreshold": {"0", "-1"},
		"scaledownunneededtime":            {"10m0s", "10"},
		"scaledownunreadytime":             {"1h", "-1h"},
		"maxnodeprovisiontime":             {"3m", "soon"},
		"maxnodestartuptime":               {"3m", "soon"},
		"ignoredaemonsetsutilization":      {"true", "maybe"},
		"drift":                            {"true", "maybe"},
		"maxnodeage":                       {"720h", "30d"},
		"repairafter":                      {"15m", "soon"},
		"replacedraintime":                 {"1h", "late"},
		"disruptionbudgets":                {"2 of drifted", "two"},
	} {
		o, warnings := parseOptions(tag(name, c.good))
		if o == (cluster.Options{}) || len(warnings) > 0 {
			t.Errorf("%s=%s: %+v, %v", name, c.good, o, warnings)
		}
		if o, warnings := parseOptions(tag(name, c.bad)); o != (cluster.Options{}) || len(warnings) != 1 || !strings.Contains(warnings[0], name) {
			t.Errorf("%s=%s: %+v, %v", name, c.bad, o, warnings)
		}
	}
	if _, warnings := parseOptions(tag("scaledownunneeded", "1m")); len(warnings) != 1 || !strings.Contains(warnings[0], "maxnodestartuptime") {
		t.Errorf("an unknown option: %v", warnings)
	}
}
