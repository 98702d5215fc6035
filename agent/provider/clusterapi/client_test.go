package clusterapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

// TestVersion: of what a management cluster serves, the API server's preferred version first, the
// first one that this package reads is used; none is an error that names the remedy.
func TestVersion(t *testing.T) {
	for _, c := range []struct{ served, setting, want, err string }{
		{"v1beta2 v1beta1", "", "v1beta2", ""},
		{"v1beta1", "", "v1beta1", ""},
		{"v1beta1 v1alpha4 v1alpha3", "", "v1beta1", ""},
		{"v1alpha4 v1beta1", "", "v1beta1", ""},
		{"v1 v1beta2", "", "v1beta2", ""},
		{"v1beta2 v1beta1", "v1beta1", "v1beta1", ""},
		{"v1alpha4 v1alpha3", "", "", "cluster.x-k8s.io is served as v1alpha4, v1alpha3, and this agent reads v1beta1 and v1beta2: upgrade Cluster API to 1.0 or newer"},
		{"v1alpha3", "", "", "upgrade Cluster API"},
		{"v1", "", "", "cluster.x-k8s.io is served as v1, and this agent reads v1beta1 and v1beta2: use a newer agent"},
		{"v1 v1alpha4", "", "", "use a newer agent"},
		{"v1beta2", "v1beta1", "", `version "v1beta1" of cluster.x-k8s.io has no Machines: leave AUTOSCALER_CLUSTERAPI_VERSION empty, or name one of v1beta2`},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			var answer any
			if version, ok := strings.CutPrefix(r.URL.Path, "/apis/cluster.x-k8s.io/"); ok {
				answer = map[string]any{"kind": "APIResourceList", "groupVersion": "cluster.x-k8s.io/" + version, "resources": []any{map[string]string{"name": "machines", "kind": "Machine"}}}
			} else {
				var versions []map[string]string
				for v := range strings.FieldsSeq(c.served) {
					versions = append(versions, map[string]string{"version": v})
				}
				answer = map[string]any{"kind": "APIGroup", "name": "cluster.x-k8s.io", "versions": versions, "preferredVersion": versions[0]}
			}
			if err := json.NewEncoder(w).Encode(answer); err != nil {
				t.Error(err)
			}
		}))
		client, err := capi.NewClient(&rest.Config{Host: server.URL}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		p := newTest(Config{})
		p.management, p.set.version = client, c.setting
		_, got, err := p.version(t.Context())
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s, setting %q: %q, %v", c.served, c.setting, got, err)
		}
		server.Close()
	}
}
