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

// TestListWhoseMarkerIsGone: the last server of a page is deleted before the next page is read. The list is read anew, and an
// answer that goes on refusing is told.
func TestListWhoseMarkerIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		code, refusals int // the answers to the second page
		want           []string
		requests       int
	}{
		"Nova":             {http.StatusBadRequest, 1, []string{"a", "c"}, 4},
		"others":           {http.StatusNotFound, 2, []string{"a", "c"}, 6},
		"each time":        {http.StatusBadRequest, 9, nil, 2 * listAttempts},
		"another mistake":  {http.StatusForbidden, 1, nil, 2},
		"nothing is wrong": {0, 0, []string{"a", "c"}, 2},
	} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Query().Get("marker") == "":
				_, _ = w.Write([]byte(`{"flavors": [{"id": "a"}], "flavors_links": [{"rel": "next", "href": "x"}]}`))
			case requests/2 <= c.refusals:
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(`{"badRequest": {"code": 400, "message": "marker [a] not found"}}`))
			default:
				_, _ = w.Write([]byte(`{"flavors": [{"id": "c"}]}`))
			}
		}))
		client := &gophercloud.ServiceClient{ProviderClient: &gophercloud.ProviderClient{}, Endpoint: server.URL + "/"}
		list, err := List[flavors.Flavor](t.Context(), flavors.ListDetail(client, flavors.ListOpts{}), "flavors")
		server.Close()
		var ids []string
		for _, f := range list {
			ids = append(ids, f.ID)
		}
		if (err == nil) != (c.want != nil) || err == nil && !slices.Equal(ids, c.want) || requests != c.requests {
			t.Errorf("%s: %q after %d requests, %v", name, ids, requests, err)
		}
	}
}
