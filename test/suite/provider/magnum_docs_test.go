package provider_test

import (
	"encoding/json"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

// TestMagnumAccessRules: the access rules that docs/providers/magnum.md tells an operator
// to give are those that are needed, no more and no fewer.
func TestMagnumAccessRules(t *testing.T) {
	text, err := os.ReadFile("../../../docs/providers/magnum.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```json\n")
	block, _, _ := strings.Cut(rest, "```")
	var rules []struct{ Service, Method, Path string }
	if err := json.Unmarshal([]byte(block), &rules); err != nil || len(rules) == 0 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	used := map[int]bool{}
	for _, driver := range magnums {
		w := newMagnum(t, openstack.MagnumCluster{Driver: driver})
		p := w.connect(t, byRole)
		w.NoValidHost("*", "*")
		if err := p.Resize(ctx, workers, 2, 3); err != nil {
			t.Fatal(err)
		}
		w.settle(t)
		w.FailNodes("no")
		if err := p.Resize(ctx, workers, 3, 4); err != nil {
			t.Fatal(err)
		}
		w.settle(t)
		groups(t, p)
		if err := p.Delete(ctx, workers, w.Alive(workers)[0]); err != nil {
			t.Fatal(err)
		}
		w.settle(t)
		groups(t, p)
		for _, call := range w.Calls() {
			if call.Service == "identity" {
				continue
			}
			covered := false
			for i, r := range rules {
				_, below, _ := strings.Cut(strings.TrimPrefix(r.Path, "/"), "/") // the version
				asked, ok := strings.CutPrefix(call.Action, r.Method+" ")
				if match, _ := path.Match("/"+below, asked); match && ok && r.Service == call.Service {
					covered, used[i] = true, true
				}
			}
			if !covered {
				t.Errorf("no rule allows %s %s", call.Service, call.Action)
			}
		}
	}
	for i, r := range rules {
		if !used[i] {
			t.Errorf("nothing needs the rule %+v", r)
		}
	}
}
