package config

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/internal/form"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/oddvalues"
)

// knobs is a policy with one setting more: the field with its tags is all of it.
type knobs struct {
	DrainPause time.Duration `split_words:"true" default:"5s" range:"1s..1h" desc:"Time between two drains."`
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
		{knobs{time.Second - 1, 0, "old", 1}, "AUTOSCALER_SCALING_DRAIN_PAUSE is 999.999999ms: use a time from 1s to 1h, for example 5s"},
		{knobs{time.Second, 1, "old", 1}, "AUTOSCALER_SCALING_SHARE is 1: use a fraction from 0 to below 1, for example 0.5"},
		{knobs{time.Second, -0.1, "old", 1}, "AUTOSCALER_SCALING_SHARE is -0.1: use a fraction from 0 to below 1, for example 0.5"},
		{knobs{time.Second, 0, "odd", 1}, `AUTOSCALER_SCALING_ORDER is "odd": use old or new`},
		{knobs{time.Second, 0, "old", 10}, "AUTOSCALER_SCALING_TRIES is 10: use a number from 1 to 9, for example 3"},
	} {
		var got []string
		judge(reflect.ValueOf(c.knobs), list, func(v Variable, value, remedy string) {
			got = append(got, fmt.Sprintf("%s is %v: %s", v.Name, value, remedy))
		})
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%+v: %q, want %q", c.knobs, got, c.want)
		}
	}
}

// formOf is the name under which package oddvalues knows the values of a variable; empty: a type of its own.
func formOf(v Variable) string {
	switch {
	case v.tag.Get("form") != "" && form.Known(v.tag.Get("form")):
		return v.tag.Get("form")
	case v.typ.Kind() == reflect.Bool:
		return "bool"
	case v.isTime():
		return "time"
	case v.typ.Kind() == reflect.Float64:
		return "float"
	case reflect.Zero(v.typ).CanInt(), reflect.Zero(v.typ).CanUint():
		return "int"
	}
	return ""
}

// TestEverySettingIsChecked: the tags or the type of each setting say what it allows, they can be read, and the default is
// allowed. The next setting without a check fails here.
func TestEverySettingIsChecked(t *testing.T) {
	clean(t)
	var c Config
	if err := process(&c); err != nil {
		t.Fatal(err)
	}
	for _, v := range Variables() {
		limits, name := v.tag.Get("range"), v.tag.Get("form")
		least, most, both := strings.Cut(limits, "..")
		switch kind := formOf(v); {
		case decodes(v.typ), kind == "bool", limits == "any":
		case kind == "time", kind == "float", kind == "int":
			if most = strings.TrimPrefix(most, "<"); !both || least == "" || most == "" || v.bound(least) >= v.bound(most) {
				t.Errorf("%s: range %q has no least and no most", v.Name, limits)
			}
		case v.tag.Get("oneof") != "":
		case v.tag.Get("pattern") != "":
			if _, err := regexp.Compile(v.tag.Get("pattern")); err != nil || v.tag.Get("write") == "" {
				t.Errorf("%s: %v, and what to write is %q", v.Name, err, v.tag.Get("write"))
			}
		case !form.Known(name) && ownForms[name] == nil:
			t.Errorf("%s has no check: give its field a range, oneof, pattern or form (checks.go)", v.Name)
		}
	}
	judge(reflect.ValueOf(c), Variables(), func(v Variable, value, remedy string) {
		t.Errorf("the default of %s is %v: %s", v.Name, value, remedy)
	})
}

// odd are values that a variable must refuse, by its form.
func odd(v Variable) []string {
	out := oddvalues.Lists()
	switch kind := formOf(v); {
	case kind != "":
		out = append(out, oddvalues.Refused(kind)...)
	case v.tag.Get("oneof")+v.tag.Get("pattern") != "":
		out = append(out, "perhaps this", " ", " x")
	}
	if v.typ.Kind() == reflect.Slice { // blanks behind a comma are no part of an element
		out = slices.DeleteFunc(out, func(s string) bool { return strings.TrimSpace(s) != s && strings.TrimSpace(s) != "" })
	}
	return out
}

// TestDrawnSettings draws settings with values from a dictionary of what people write: no value that the setting's type
// refuses is taken, its error names the setting and says what to write, and a value that has the form is not refused for its form.
func TestDrawnSettings(t *testing.T) {
	seed, times := drawn.Seed(t), drawn.Times(t)
	r := rand.New(rand.NewPCG(seed, 53))
	clean(t)
	all := Variables()
	for range 1000 * times {
		set, bad := map[string]string{}, ""
		v := all[r.IntN(len(all))]
		if list := odd(v); len(list) > 0 {
			bad = v.Name
			set[v.Name] = list[r.IntN(len(list))]
		}
		for range r.IntN(3) {
			v := all[r.IntN(len(all))]
			if good := oddvalues.Taken(formOf(v)); set[v.Name] == "" && len(good) > 0 && !strings.HasSuffix(v.Name, "FILE") && v.Name != bad {
				set[v.Name] = good[r.IntN(len(good))]
			}
		}
		for name, value := range set {
			if err := os.Setenv(name, value); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Load()
		told := ""
		for _, e := range Flatten(err) {
			if strings.HasPrefix(e.Error(), bad+" ") || strings.HasPrefix(e.Error(), bad+":") {
				told += e.Error()
			}
			if name, rest, _ := strings.Cut(e.Error(), " is "); strings.Contains(rest, ": write ") && name != bad && set[name] != "" && !strings.Contains(rest, "range") {
				t.Errorf("%s=%q has the form: %v", name, set[name], e)
			}
		}
		if bad != "" && (told == "" || !strings.Contains(told, "write ") && !strings.Contains(told, "use ")) {
			t.Errorf("%s=%q: %v", bad, set[bad], err)
		}
		for name := range set {
			_ = os.Unsetenv(name) // it was set
		}
	}
}

// TestTextsOfRanges pins what an operator reads.
func TestTextsOfRanges(t *testing.T) {
	for name, c := range map[string][2]string{
		"AUTOSCALER_SCALING_UTILIZATION_THRESHOLD":   {"1.5", "AUTOSCALER_SCALING_UTILIZATION_THRESHOLD is 1.5: use a fraction from 0 to 1, for example 0.5"},
		"AUTOSCALER_SCALING_CONSOLIDATE_SAVING":      {"1", "AUTOSCALER_SCALING_CONSOLIDATE_SAVING is 1: use a fraction from 0 to below 1, for example 0.15"},
		"AUTOSCALER_SCALING_CONSOLIDATE":             {"on", `AUTOSCALER_SCALING_CONSOLIDATE is "on": use priced, always or off`},
		"AUTOSCALER_SCALING_UNNEEDED_FOR":            {"-1s", "AUTOSCALER_SCALING_UNNEEDED_FOR is -1s: use a time from 0s to 8760h, for example 10m"},
		"AUTOSCALER_SCALING_MAX_NODE_PROVISION_TIME": {"0s", "AUTOSCALER_SCALING_MAX_NODE_PROVISION_TIME is 0s: use a time from 1s to 24h, for example 15m"},
		"AUTOSCALER_KUBELET_MAX_PODS":                {"0", "AUTOSCALER_KUBELET_MAX_PODS is 0: use a number from 1 to 10000, for example 110"},
		"AUTOSCALER_LEASE_RETRY_PERIOD":              {"99ms", "AUTOSCALER_LEASE_RETRY_PERIOD is 99ms: use a time from 100ms to 1m, for example 2s"},
		"AUTOSCALER_OBSERVE_FAST":                    {"1ms", "AUTOSCALER_OBSERVE_FAST is 1ms: use a time from 100ms to 1h, for example 2s"},
		"AUTOSCALER_OBSERVE_TIMEOUT":                 {"1ms", "AUTOSCALER_OBSERVE_TIMEOUT is 1ms: use a time from 1s to 10m, for example 25s"},
		"AUTOSCALER_SCALER_IDLE":                     {"1ms", "AUTOSCALER_SCALER_IDLE is 1ms: use a time from 1s to 1h, for example 30s"},
		"AUTOSCALER_SCALER_CALM":                     {"-1ms", "AUTOSCALER_SCALER_CALM is -1ms: use a time from 0s to 10m, for example 2s"},
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
