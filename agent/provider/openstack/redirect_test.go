package openstack

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestLoginIsNotRedirected: an endpoint that redirects sends the secret of a login nowhere else; one that redirects on its own
// machine is followed.
func TestLoginIsNotRedirected(t *testing.T) {
	var got atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got.Add(1) }))
	defer elsewhere.Close()
	for name, c := range map[string]struct {
		host string // of the other server, which listens on 127.0.0.1
		want int64
	}{"another name": {"localhost", 0}, "the same machine": {"127.0.0.1", 1}} {
		got.Store(0)
		to := strings.Replace(elsewhere.URL, "127.0.0.1", c.host, 1)
		keystone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to+r.URL.Path, http.StatusTemporaryRedirect)
		}))
		t.Setenv("OS_AUTH_URL", keystone.URL+"/v3")
		t.Setenv("OS_APPLICATION_CREDENTIAL_ID", "id")
		t.Setenv("OS_APPLICATION_CREDENTIAL_SECRET", "secret")
		s, err := NewSession(Config{Timeout: 5 * time.Second}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Client(t.Context())
		if got.Load() != c.want || c.want == 0 && (err == nil || !strings.Contains(err.Error(), "which would get the credentials")) {
			t.Errorf("%s: %d requests there, %v", name, got.Load(), err)
		}
		keystone.Close()
	}
}
