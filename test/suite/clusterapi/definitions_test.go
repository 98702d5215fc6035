package clusterapi

import (
	"os"
	"reflect"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/capi"
)

// TestDefinitions: the CustomResourceDefinitions that every run of test/ uses are those of
// the pinned version, without their descriptions.
func TestDefinitions(t *testing.T) {
	if os.Getenv("AUTOSCALER_TEST_CLUSTERAPI") != "1" {
		t.Skip("Cluster API's module is not downloaded: make e2e-clusterapi runs this")
	}
	m, err := Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	real, err := m.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := capi.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for _, u := range real {
		o := ours[u.GetName()]
		if o == nil {
			continue
		}
		if same++; !reflect.DeepEqual(bare(u.Object), bare(o.Object)) {
			t.Errorf("%s is not that of %s", u.GetName(), m.Version)
		}
	}
	if same != len(ours) {
		t.Errorf("%d of our %d definitions are Cluster API's", same, len(ours))
	}
}

// bare leaves out the descriptions of a schema; a property of that name is an object.
func bare(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if _, text := x.(string); k != "description" || !text {
				out[k] = bare(x)
			}
		}
		return out
	case []any:
		var out []any
		for _, x := range v {
			out = append(out, bare(x))
		}
		return out
	}
	return v
}
