package groups

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

func TestExampleIsValid(t *testing.T) {
	data, err := os.ReadFile("../../units/groups.yaml.example")
	if err != nil {
		t.Fatal(err)
	}
	known := func(json.RawMessage) error { return nil } // the sections' own packages read them
	f, err := Parse(data, map[string]Section{"machines": known, "controlPlane": known})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Groups) != 6 || len(f.Headroom) != 3 {
		t.Errorf("%d groups, %d headroom", len(f.Groups), len(f.Headroom))
	}
	groups := []cluster.NodeGroup{{ID: "workers-b"}, {ID: "gpu", Template: cluster.Template{Spec: "lt", Taints: []cluster.Taint{{Key: "nvidia.com/gpu", Effect: "NoSchedule"}},
		Capacity: cluster.Resources{MilliCPU: 8000}, Allocatable: cluster.Resources{MilliCPU: 7800}}}, {ID: "old"}, {ID: "migrating"}, {ID: "workers-a"}}
	f.Apply(groups, cluster.Reservation{})
	b, gpu := groups[0], groups[1]
	if b.Price != 0.192 || b.Priority == nil || *b.Priority != 20 || b.Balance != "web" || *b.Options.MaxNodeStartupTime != 15*time.Minute || *b.Options.IgnoreDaemonSetsUtilization {
		t.Errorf("workers-b is %+v", b)
	}
	if x := gpu.Template; x.Allocatable.Extended["nvidia.com/gpu"] != 1 || x.Capacity.Extended["nvidia.com/gpu"] != 1 || x.Allocatable.MilliCPU != 7800 || x.Spec == "lt" ||
		len(x.Taints) != 1 || x.Taints[0].Value != "present" || x.Labels["accelerator"] != "a10" || *gpu.Options.ScaleDownGPUUtilization != 0.3 {
		t.Errorf("gpu is %+v", x)
	}
	if groups[2].Pause == nil || !groups[2].Pause.Until.IsZero() || groups[3].Pause.Why != "change 4711" || groups[3].Pause.Until.IsZero() || groups[4].Pause != nil {
		t.Errorf("pauses are %+v, %+v", groups[2].Pause, groups[3].Pause)
	}
	if u := f.Unknown(groups); len(u) != 0 {
		t.Errorf("unknown %v", u)
	}
	if u := f.Unknown(groups[:1]); strings.Join(u, " ") != "gpu migrating old workers-a" {
		t.Errorf("unknown %v", u)
	}
	if h := f.Headroom[1]; h.Count != 4 || h.Piece.Requests.MilliCPU != 1000 || h.Piece.Requests.Memory != 2<<30 {
		t.Errorf("floor is %+v", h)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for text, want := range map[string][]string{
		"groups: {w: {prize: 1}}":                                     {"groups.w.prize", "did you mean price?"},
		"groups: {w: {price: cheap}}":                                 {"groups.w.price", `"cheap"`, "0.192"},
		"groups: {w: {price: -1}}":                                    {"groups.w.price", "-1"},
		"groups: {w: {max: 9}}":                                       {"groups.w.max", "kept by the cloud"},
		"groups: {w: {options: {scaleDownUnneededTime: 10}}}":         {"scaleDownUnneededTime", "10m"},
		"groups: {w: {options: {scaledownunneededtime: 10m}}}":        {"did you mean scaleDownUnneededTime?"},
		"groups: {w: {options: {scaleDownUtilizationThreshold: 50}}}": {"50 is above 1"},
		"groups: {w: {pause: tomorrow}}":                              {"groups.w.pause", "2026-12-24T18:00:00Z"},
		"groups: {w: {template: {taints: [gpu]}}}":                    {"groups.w.template.taints[0]", "key=value:NoSchedule"},
		"groups: {w: {template: {capacity: {cpu: lots}}}}":            {"groups.w.template.capacity.cpu", "500m"},
		"groups: {\"w[\": {price: 1}}":                                {"no pattern"},
		"groups: [a]":                                                 {"groups", "write a mapping"},
		"group: {}":                                                   {"did you mean groups?"},
		"groups: {w: {price: 1}, w: {price: 2}}":                      {"no YAML", "already set"},
		"headroom: [{cpu: 4}]":                                        {"headroom[0].name"},
		"headroom: [{name: a}]":                                       {"in one way"},
		"headroom: [{name: a, cpu: 1, pods: {count: 1}}]":             {"in one way"},
		"headroom: [{name: a, cpu: 1}, {name: a, cpu: 1}]":            {"headroom[1].name", "twice"},
		"headroom: [{name: a, pods: {cpu: 1}}]":                       {"headroom[0].pods.count"},
		"headroom: [{name: a, pods: {count: 1, gpu: 1}}]":             {"nvidia.com/gpu"},
		"headroom: [{name: a, nodes: {count: 1}}]":                    {"group: workers"},
		"headroom: [{name: a, cpu: 1, schedule: [{days: someday}]}]":  {"headroom[0].schedule[0].days", "mon-fri"},
		"headroom: [{name: a, cpu: 1, schedule: [{hours: 8-18}]}]":    {"07:30-19:00"},
		"headroom: [{name: a, cpu: 1, schedule: [{timeZone: Mars}]}]": {"Mars", "Europe/Berlin"},
		"{": {"no YAML"},
		"groups: {w: {price: 1}}\n---\ngroups: {}":                        {"line 3: ", "a second document"},
		"groups: {w: {template: {labels: {\"a b\": c}}}}":                 {"groups.w.template.labels.a b", "cannot be the key of a label"},
		"groups: {w: {template: {labels: {a: \"b c\"}}}}":                 {"groups.w.template.labels.a", "cannot be the value of a label"},
		"groups: {w: {template: {labels: {a: -b}}}}":                      {"groups.w.template.labels.a"},
		"groups: {w: {template: {labels: {kubernetes.io/a/b: c}}}}":       {"cannot be the key of a label"},
		"groups: {w: {template: {taints: [\"a b=c:NoSchedule\"]}}}":       {"groups.w.template.taints[0]", "cannot be the key of a taint"},
		"groups: {w: {template: {capacity: {mem: 16Gi}}}}":                {"groups.w.template.capacity.mem", "did you mean memory?"},
		"groups: {w: {template: {capacity: {gpu: 1}}}}":                   {"did you mean nvidia.com/gpu?"},
		"groups: {w: {template: {capacity: {memory: 16}}}}":               {"groups.w.template.capacity.memory", "16 bytes", "16Gi"},
		"groups: {w: {template: {capacity: {memory: 16k}}}}":              {"16000 bytes", "16Gi"},
		"headroom: [{name: a, memory: 8}]":                                {"headroom[0].memory", "8Gi"},
		"headroom: [{name: a, mem: 8Gi}]":                                 {"headroom[0].mem", "did you mean memory?"},
		"headroom: [{name: a, pods: {count: 1, mem: 1Gi}}]":               {"headroom[0].pods.mem", "did you mean memory?"},
		"headroom: [{name: a, cpu: 1, nodeSelector: {a: \"b c\"}}]":       {"headroom[0].nodeSelector.a"},
		"headroom: [{name: a, cpu: 1, schedule: [{hours: 08:00-08:00}]}]": {"headroom[0].schedule[0].hours", "no length", "00:00-24:00"},
		"headroom: [{name: a, cpu: 1, schedule: [{hours: 24:00-08:00}]}]": {"07:30-19:00"},
		"groups: {w: {price: x, priority: x}}":                            {"groups.w.price", "groups.w.priority"},
	} {
		_, err := Parse([]byte(text), nil)
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", text, err, w)
			}
		}
	}
	for _, text := range []string{"", "# nothing", "groups:\nheadroom:", "groups: {w: }"} {
		if _, err := Parse([]byte(text), nil); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTemplateThatTheCloudCannotDescribe(t *testing.T) {
	f, err := Parse([]byte("groups: {w: {template: {capacity: {cpu: 4, memory: 16Gi, pods: 30}}}}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	g := []cluster.NodeGroup{{ID: "w", Template: cluster.Template{Unknown: "no such instance type"}}}
	f.Apply(g, cluster.Reservation{Kube: cluster.Resources{MilliCPU: 100, Memory: 1 << 30}, MaxPods: 110})
	if x := g[0].Template; x.Unknown != "" || x.Allocatable.MilliCPU != 3900 || x.Allocatable.Memory != 15<<30 || x.Allocatable.Pods != 30 {
		t.Errorf("%+v", x)
	}
}

// TestHugePagesAreNoMemory: what groups.yaml adds in huge pages is taken from the memory that the cloud's template has.
func TestHugePagesAreNoMemory(t *testing.T) {
	f, err := Parse([]byte("groups: {w: {template: {capacity: {hugepages-2Mi: 3Gi}}}}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]int64{"hugepages-2Mi": 1 << 30}
	g := []cluster.NodeGroup{{ID: "w", Template: cluster.Template{Capacity: cluster.Resources{Memory: 16 << 30, Extended: pages}, Allocatable: cluster.Resources{Memory: 14 << 30, Extended: pages}}}}
	f.Apply(g, cluster.Reservation{})
	if a := g[0].Template.Allocatable; a.Memory != 12<<30 || a.Extended["hugepages-2Mi"] != 3<<30 {
		t.Errorf("%+v", a)
	}
}

func TestSchedules(t *testing.T) {
	const form = "Mon 2006-01-02 15:04"
	for _, c := range []struct{ schedule, now, open, next string }{
		{"{days: mon-fri, hours: 07:30-19:00, timeZone: Europe/Berlin}", "2026-11-20T06:29:00Z", "no", "Fri 2026-11-20 06:30"},
		{"{days: mon-fri, hours: 07:30-19:00, timeZone: Europe/Berlin}", "2026-11-20T06:30:00Z", "yes", "Fri 2026-11-20 18:00"},
		{"{days: mon-fri, hours: 07:30-19:00, timeZone: Europe/Berlin}", "2026-11-20T18:00:00Z", "no", "Mon 2026-11-23 06:30"},
		// The last Sunday of March: the clock goes from 02:00 to 03:00.
		{"{days: sun, hours: 01:00-04:00, timeZone: Europe/Berlin}", "2026-03-29T00:30:00Z", "yes", "Sun 2026-03-29 02:00"},
		{"{days: fri, hours: 22:00-02:00}", "2026-11-21T01:00:00Z", "yes", "Sat 2026-11-21 02:00"},
		{"{days: 'sat,sun'}", "2026-11-21T12:00:00Z", "yes", "Sun 2026-11-22 00:00"},
		{"{days: fri-mon, hours: 00:00-24:00}", "2026-11-24T12:00:00Z", "no", "Fri 2026-11-27 00:00"},
		{"{hours: 08:00-09:00}", "2026-11-24T12:00:00Z", "no", "Wed 2026-11-25 08:00"},
		{"{days: Monday, hours: 08:00-09:00}", "2026-11-23T09:00:00Z", "no", "Mon 2026-11-30 08:00"},
	} {
		f, err := Parse([]byte("headroom: [{name: a, cpu: 1, schedule: ["+c.schedule+"]}]"), nil)
		if err != nil {
			t.Errorf("%s: %v", c.schedule, err)
			continue
		}
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		open, next := f.HeadroomAt(now)[0].Open(now)
		if open != (c.open == "yes") || next.Format(form) != c.next {
			t.Errorf("%s at %s: open %v, next %s; want %s, %s", c.schedule, c.now, open, next.Format(form), c.open, c.next)
		}
	}
}

// some is a cloud with one group.
type some struct{ provider.Provider }

func (some) Groups(context.Context) ([]cluster.NodeGroup, error) {
	return []cluster.NodeGroup{{ID: "w"}}, nil
}

// TestManyMistakes: of thousands of mistakes the first are told, and how many more there are.
func TestManyMistakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "groups.yaml")
	for mistakes, lines := range map[int]int{20: 20, 21: 21, 3000: 21} {
		text := "groups:\n  a:\n"
		for i := range mistakes {
			text += fmt.Sprintf("    nothing%04d: 1\n", i)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		log, _ := test.NewNullLogger()
		_, err := Open(path, nil, PricesComputed, logrus.NewEntry(log))
		list := flatten(err)
		if len(list) != lines || !strings.Contains(list[0].Error(), "groups.yaml:3: groups.a.nothing0000: ") {
			t.Fatalf("%d mistakes: %d lines are told, want %d: %v", mistakes, len(list), lines, err)
		}
		if last, want := list[lines-1].Error(), fmt.Sprintf("%s: and %d more mistakes", path, mistakes-20); mistakes > 20 && last != want {
			t.Errorf("the last line is %q, want %q", last, want)
		}
	}
}

func TestLiveKeepsTheLastGoodFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "groups.yaml")
	version := 0
	write := func(text string) {
		version++
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(version) * time.Second) // file systems stamp coarsely
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	log, hook := test.NewNullLogger()
	live, err := Open(path, nil, PricesComputed, logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	changes := 0
	live.OnChange(func() { changes++ })
	price := func() float64 {
		live.Look()
		g, err := live.Overlay(some{}, cluster.Reservation{}).Groups(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return g[0].Price
	}
	if p := price(); p != 0 || changes != 0 {
		t.Errorf("price %v, %d changes", p, changes)
	}
	write("groups: {w: {price: 1}}")
	if p := price(); p != 1 || changes != 1 {
		t.Errorf("price %v, %d changes", p, changes)
	}
	write("groups: {w: {prise: 2}}")
	for range 3 {
		if p := price(); p != 1 || changes != 1 || !strings.Contains(live.Fault(), "groups.w.prise") {
			t.Errorf("price %v, %d changes, fault %q", p, changes, live.Fault())
		}
	}
	said := 0
	for _, e := range hook.AllEntries() {
		if e.Level == logrus.ErrorLevel {
			said++
		}
	}
	if said != 1 {
		t.Errorf("the mistake was told %d times", said)
	}
	write("groups: {w: {price: 3}}")
	if p := price(); p != 3 || live.Fault() != "" {
		t.Errorf("price %v, fault %q", p, live.Fault())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if p := price(); p != 3 {
		t.Errorf("a file that is away for a moment counts as removed: price %v", p)
	}
	for range goneAfter {
		live.Look()
	}
	if p := price(); p != 0 {
		t.Errorf("a removed file still holds: price %v", p)
	}
	write("groups: {w: {prise: 2}}")
	if _, err := Open(path, nil, PricesComputed, logrus.NewEntry(log)); err == nil || !strings.Contains(err.Error(), "groups.w.prise") {
		t.Errorf("a start with a wrong file: %v", err)
	}
}

// TestMistakesHaveTheirLine: an error starts with the file and the line, as a compiler's does.
func TestMistakesHaveTheirLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "groups.yaml")
	for text, want := range map[string][]string{
		"# one\ngroups:\n  w:\n    price: 1\n    prize: 2\n  v:\n    options:\n      maxNodeStartupTime: 10\n": {"5: groups.w.prize", "8: groups.v.options.maxNodeStartupTime"},
		"headroom:\n- name: a\n  cpu: 1\n- cpu: 2\n  schedule:\n  - days: mon\n  - days: someday\n":            {"4: headroom[1].name", "7: headroom[1].schedule[1].days"},
		"groups:\n  w: &w {price: x}\n  v: *w\n":                                                               {"2: groups.w.price", "3: groups.v.price"},
		"groups:\n  w: {price: 1}\n  w: {price: 2}\n":                                                          {`3: it is no YAML: key "w" already set in map`},
		"groups:\n  w: {price: 1\nheadroom: []\n":                                                              {"2: it is no YAML: did not find expected"},
		"\tgroups: {}\n": {"it is no YAML: found character that cannot start any token"},
		"nova:\n  groups:\n  - flavor: a\n  - {}\n": {"4: nova.groups[1].flavor"},
		"headroom: []\n---\nheadroom: []\n":         {"3: a second document"},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path, readers(map[string]string{}), PricesComputed, nil)
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		for i, w := range want {
			if i >= len(lines) || !strings.HasPrefix(lines[i], path+":") || !strings.Contains(lines[i], w) {
				t.Errorf("%s\n%v\nwant %q", text, err, want)
			}
		}
		if len(lines) != len(want) {
			t.Errorf("%s\n%d mistakes: %v", text, len(lines), err)
		}
	}
	for _, text := range []string{"---\ngroups: {}\n", "groups: {}\n---\n", "groups: {}\n...\n"} {
		if _, err := Parse([]byte(text), nil); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
