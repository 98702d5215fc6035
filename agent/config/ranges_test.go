package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// knobs is a policy with one setting more: the field with its tags is all of it.
type knobs struct {
	DrainPause time.Duration `split_words:"true" default:"5s" range:"1s.." desc:"Time between two drains."`
	Share      float64       `default:"0.5" range:"0..<1"`
	Order      string        `default:"old" oneof:"old,new"`
	Tries      int           `default:"3" range:"1..9"`
}

// TestAKnobIsOneField: name, default, line of the example file and range of a new setting
// come from its field alone (docs/changing.md).
func TestAKnobIsOneField(t *testing.T) {
	list := variables(Prefix+"_SCALING", reflect.TypeFor[knobs](), nil)
	if list[0].Name != "AUTOSCALER_SCALING_DRAIN_PAUSE" || !strings.Contains(exampleOf(list), "\n# Time between two drains.\n#AUTOSCALER_SCALING_DRAIN_PAUSE=5s\n") {
		t.Errorf("%+v\n%s", list[0], exampleOf(list))
	}
	for _, c := range []struct {
		knobs
		want string
	}{
		{knobs{time.Second, 0, "new", 9}, ""},
		{knobs{time.Second - 1, 0, "old", 1}, "AUTOSCALER_SCALING_DRAIN_PAUSE is 999.999999ms: use 1s or more"},
		{knobs{time.Second, 1, "old", 1}, "AUTOSCALER_SCALING_SHARE is 1: use a fraction from 0 to below 1, for example 0.5"},
		{knobs{time.Second, -0.1, "old", 1}, "AUTOSCALER_SCALING_SHARE is -0.1: use a fraction from 0 to below 1, for example 0.5"},
		{knobs{time.Second, 0, "odd", 1}, `AUTOSCALER_SCALING_ORDER is "odd": use old, new`},
		{knobs{time.Second, 0, "old", 10}, "AUTOSCALER_SCALING_TRIES is 10: use a number from 1 to 9, for example 3"},
	} {
		var got []string
		outOfRange(reflect.ValueOf(c.knobs), list, func(v Variable, value any, remedy string) {
			got = append(got, fmt.Sprintf("%s is %v: %s", v.Name, value, remedy))
		})
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%+v: %q, want %q", c.knobs, got, c.want)
		}
	}
}

// TestRangesHoldTheDefaults: every default is in its own range, and every range can be read.
func TestRangesHoldTheDefaults(t *testing.T) {
	clean(t)
	var c Config
	if err := process(&c); err != nil {
		t.Fatal(err)
	}
	ranges := 0
	for _, v := range Variables() {
		if v.tag.Get("range")+v.tag.Get("oneof") != "" {
			ranges++
		}
	}
	if ranges < 10 {
		t.Errorf("only %d ranges were found", ranges)
	}
	outOfRange(reflect.ValueOf(c), Variables(), func(v Variable, value any, remedy string) {
		t.Errorf("the default of %s is %v: %s", v.Name, value, remedy)
	})
}

// TestTextsOfRanges pins what an operator reads.
func TestTextsOfRanges(t *testing.T) {
	for name, c := range map[string][2]string{
		"AUTOSCALER_SCALING_UTILIZATION_THRESHOLD":   {"1.5", "AUTOSCALER_SCALING_UTILIZATION_THRESHOLD is 1.5: use a fraction from 0 to 1, for example 0.5"},
		"AUTOSCALER_SCALING_CONSOLIDATE_SAVING":      {"1", "AUTOSCALER_SCALING_CONSOLIDATE_SAVING is 1: use a fraction from 0 to below 1, for example 0.15"},
		"AUTOSCALER_SCALING_CONSOLIDATE":             {"on", `AUTOSCALER_SCALING_CONSOLIDATE is "on": use priced, always, off`},
		"AUTOSCALER_SCALING_UNNEEDED_FOR":            {"-1s", "AUTOSCALER_SCALING_UNNEEDED_FOR is -1s: use 0s or more"},
		"AUTOSCALER_SCALING_MAX_NODE_PROVISION_TIME": {"0s", "AUTOSCALER_SCALING_MAX_NODE_PROVISION_TIME is 0s: use 1s or more"},
		"AUTOSCALER_KUBELET_MAX_PODS":                {"0", "AUTOSCALER_KUBELET_MAX_PODS is 0: use a number from 1 to 1000000, for example 110"},
		"AUTOSCALER_LEASE_RETRY_PERIOD":              {"99ms", "AUTOSCALER_LEASE_RETRY_PERIOD is 99ms: use 100ms or more"},
		"AUTOSCALER_OBSERVE_FAST":                    {"1ms", "AUTOSCALER_OBSERVE_FAST is 1ms: use 100ms or more"},
		"AUTOSCALER_OBSERVE_TIMEOUT":                 {"1ms", "AUTOSCALER_OBSERVE_TIMEOUT is 1ms: use 1s or more"},
		"AUTOSCALER_SCALER_IDLE":                     {"1ms", "AUTOSCALER_SCALER_IDLE is 1ms: use 1s or more"},
		"AUTOSCALER_SCALER_CALM":                     {"-1ms", "AUTOSCALER_SCALER_CALM is -1ms: use 0s or more"},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
			t.Setenv(name, c[0])
			if _, err := Load(); err == nil || err.Error() != c[1] {
				t.Errorf("%v, want %s", err, c[1])
			}
		})
	}
}

// TestEveryVariableIsDescribed: one sentence in plain words on one line, which is not another's.
func TestEveryVariableIsDescribed(t *testing.T) {
	seen := map[string]string{}
	for _, v := range Variables() {
		switch {
		case v.About == "":
			t.Errorf("%s has no tag desc", v.Name)
		case !strings.HasSuffix(v.About, ".") || strings.ContainsAny(v.About, "\n`") || len(v.About) > 130:
			t.Errorf("%s: %q is no sentence of one line", v.Name, v.About)
		}
		prefix := strings.SplitN(v.Name, "_", 3)[1]
		if other := seen[prefix+v.About]; other != "" {
			t.Errorf("%s and %s are described alike: %q", other, v.Name, v.About)
		}
		seen[prefix+v.About] = v.Name
	}
}

// TestUnitsOfTotals: bytes where GiB are counted, and a GPU by a name that no Node has.
func TestUnitsOfTotals(t *testing.T) {
	for name, c := range map[string][2]string{
		"AUTOSCALER_SCALING_MAX_MEMORY_TOTAL": {"137438953472", "AUTOSCALER_SCALING_MAX_MEMORY_TOTAL is 137438953472: the unit is GiB: write 128 for so many bytes"},
		"AUTOSCALER_SCALING_GPU_TOTAL":        {"nvidia-tesla-k80:0:16", "write nvidia.com/gpu:0:16"},
	} {
		clean(t)
		t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
		t.Setenv(name, c[0])
		if _, err := Load(); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%v, want %s", err, c[1])
		}
		t.Setenv(name, "")
	}
	for text, want := range map[string]string{"amd:0:2": "write amd.com/gpu:0:2", "gpu:1:2": "write nvidia.com/gpu:1:2", "cores:0:1": "no resource of a Node"} {
		var b decision.Bounds
		if err := b.Decode(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	var b decision.Bounds
	if err := b.Decode("nvidia.com/gpu:0:16,hugepages-2Mi:0:4"); err != nil || len(b) != 2 {
		t.Errorf("%v, %v", b, err)
	}
}
