package world

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
)

func TestAnUnknownProviderIsRefusedBeforeAnythingStarts(t *testing.T) {
	w, err := Start(t.Context(), Options{Dir: t.TempDir(), Providers: []string{"asg", "cloudscale"}})
	if err == nil || w != nil {
		t.Fatalf("%v, %v: want an error and nothing started", w, err)
	}
	for _, want := range []string{`"cloudscale"`, "known are", "asg"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not have %s", err, want)
		}
	}
}

// TestEmulatedCloudsHaveAProvider: a name that the demo takes is one that the agent
// takes.
func TestEmulatedCloudsHaveAProvider(t *testing.T) {
	for _, name := range Providers() {
		if _, err := all.Split(name); err != nil {
			t.Error(err)
		}
	}
}

func TestSectionsStandBesideEachOther(t *testing.T) {
	w := &World{Options: Options{Dir: t.TempDir()}}
	for name, section := range map[string]any{"nova": map[string]any{"a": 1}, "groups": map[string]any{"workers": map[string]any{"price": 2}}} {
		if err := w.PutSection(name, section); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(w.GroupsFile())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]map[string]any
	if err := json.Unmarshal(text, &got); err != nil || got["nova"]["a"] != 1.0 || got["groups"]["workers"] == nil {
		t.Errorf("%v: %s", err, text)
	}
}
