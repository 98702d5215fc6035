package openstack

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// flavorsFrom lists the flavors of a server that gives the answers, by the query.
func flavorsFrom(t *testing.T, answers map[string]string) ([]flavors.Flavor, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.URL.RawQuery]
		if !ok {
			t.Errorf("asked for %q", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	c := &gophercloud.ServiceClient{ProviderClient: &gophercloud.ProviderClient{}, Endpoint: server.URL + "/"}
	return List[flavors.Flavor](t.Context(), flavors.ListDetail(c, flavors.ListOpts{MinDisk: 1}), "flavors")
}

// TestListAsksByMarker: the link of an answer may name a host that this machine cannot
// reach. The next page is asked for by the last ID, with the query of the first.
func TestListAsksByMarker(t *testing.T) {
	list, err := flavorsFrom(t, map[string]string{
		"minDisk=1":          `{"flavors": [{"id": "a"}, {"id": "b"}], "flavors_links": [{"rel": "next", "href": "http://inside.invalid/flavors"}]}`,
		"marker=b&minDisk=1": `{"flavors": [{"id": "c"}]}`,
	})
	var ids []string
	for _, f := range list {
		ids = append(ids, f.ID)
	}
	if err != nil || !slices.Equal(ids, []string{"a", "b", "c"}) {
		t.Errorf("%q, %v", ids, err)
	}
}

// TestListOfAHollowAnswer: an answer without the list is no empty list.
func TestListOfAHollowAnswer(t *testing.T) {
	for _, body := range []string{`{}`, `{"flavors": null}`, `{"flavor": []}`, `[]`} {
		if list, err := flavorsFrom(t, map[string]string{"minDisk=1": body}); Classify("read", "", err).Kind != provider.Transient || list != nil {
			t.Errorf("%s: %v, %v", body, list, err)
		}
	}
	if list, err := flavorsFrom(t, map[string]string{"minDisk=1": `{"flavors": []}`}); err != nil || len(list) != 0 {
		t.Errorf("an empty list: %v, %v", list, err)
	}
}
