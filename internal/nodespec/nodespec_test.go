package nodespec_test

import (
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/nodespec"
)

func TestLabel(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, ok := range [][2]string{{"pool", "team-a"}, {"pool", ""}, {"example.com/pool", "A.b_c-1"}, {long, long}, {"a/" + long, "x"}} {
		if err := nodespec.Label(ok[0], ok[1]); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range [][3]string{
		{"pool", "team/a", `"team/a" cannot be the value of a label`}, {"pool", "-a", "letter or digit at both ends"}, {"pool", "a b", "value"}, {"pool", long + "a", "63"}, {"pool", "a:b", "value"},
		{"pool", "ünter", "value"}, {"a/b/c", "x", `"a/b/c" cannot be the key of a label`}, {"", "x", "key"}, {"-a", "x", "key"}, {"Example.com/a", "x", "key"}, {"/a", "x", "key"}, {"a/", "x", "key"}, {long + "a", "x", "key"},
	} {
		if err := nodespec.Label(bad[0], bad[1]); err == nil || !strings.Contains(err.Error(), bad[2]) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestTaints(t *testing.T) {
	for text, want := range map[string]cluster.Taint{
		"a=b:NoSchedule": {Key: "a", Value: "b", Effect: "NoSchedule"}, "a:NoExecute": {Key: "a", Effect: "NoExecute"}, "x.io/a=:PreferNoSchedule": {Key: "x.io/a", Effect: "PreferNoSchedule"},
	} {
		if got, err := nodespec.ParseTaint(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"a=b": "is no taint", "a=b:Never": "is no taint", "=b:NoSchedule": "is no taint", "": "is no taint", "a b=c:NoSchedule": "key of a taint", "a=b/c:NoSchedule": "value of a taint", "a=b:c:NoSchedule": "value of a taint",
	} {
		if got, err := nodespec.ParseTaint(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if got, err := nodespec.TaintOf("k", ":NoSchedule"); err != nil || got != (cluster.Taint{Key: "k", Effect: "NoSchedule"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range [][3]string{{"k", "v:Never", "value:NoSchedule"}, {"k", "v", "value:NoSchedule"}, {"k k", "v:NoSchedule", "key"}, {"k", "v:w:NoExecute", `"v:w" cannot be the value`}} {
		if _, err := nodespec.TaintOf(bad[0], bad[1]); err == nil || !strings.Contains(err.Error(), bad[2]) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAmount(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       int64
	}{{"cpu", "1500m", 1500}, {"memory", "1Gi", 1 << 30}, {"nvidia.com/gpu", "4", 4}, {"nvidia.com/gpu", "1k", 1000}, {"pods", "110", 110}, {"hugepages-2Mi", "64Mi", 64 << 20}, {"example.com/a", "2000m", 2}} {
		if n, err := nodespec.Amount(c.name, c.text); err != nil || n != c.want {
			t.Errorf("%+v: %d, %v", c, n, err)
		}
	}
	for _, bad := range [][3]string{{"gpu", "1", "no name of a resource"}, {"nvidia.com/g p u", "1", "no name"}, {"requests.nvidia.com/gpu", "1", "no name"}, {"nvidia.com/gpu", "1.5", "whole number"}, {"nvidia.com/gpu", "1001m", "whole number"},
		{"pods", "500m", "whole number"}, {"nvidia.com/gpu", "4.0001", "whole number"}, {"memory", "lots", "quantity"}, {"cpu", "-1", "below zero"}, {"nvidia.com/gpu", "many", "quantity"}} {
		if n, err := nodespec.Amount(bad[0], bad[1]); err == nil || !strings.Contains(err.Error(), bad[2]) {
			t.Errorf("%q: %d, %v", bad, n, err)
		}
	}
}

func TestClean(t *testing.T) {
	sizes := func() cluster.Resources {
		return cluster.Resources{MilliCPU: 4000, Extended: map[string]int64{"nvidia.com/gpu": 1, "gpu": 1}}
	}
	x := cluster.Template{Labels: map[string]string{"pool": "team/a", "ok": "yes"}, Taints: []cluster.Taint{{Key: "a", Value: "b", Effect: "Never"}, {Key: "a", Effect: "NoSchedule"}},
		Capacity: sizes(), Allocatable: sizes()}
	said := nodespec.Clean(&x)
	if len(said) != 3 || len(x.Labels) != 1 || len(x.Taints) != 1 || x.Taints[0].Effect != "NoSchedule" || len(x.Capacity.Extended) != 1 || len(x.Allocatable.Extended) != 1 || x.Allocatable.MilliCPU != 4000 {
		t.Errorf("%+v %q", x, said)
	}
	if !strings.HasPrefix(said[0], `label pool="team/a" is left out: `) || !strings.HasPrefix(said[1], "taint a=b:Never is left out: ") || !strings.HasPrefix(said[2], "resource gpu is left out: ") {
		t.Errorf("%q", said)
	}
	if again := nodespec.Clean(&x); len(again) != 0 {
		t.Errorf("%q", again)
	}
}
