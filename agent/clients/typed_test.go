package clients

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// TestTypedNeedsAnAnswer: a person who types a command is told within seconds that the API
// server is away, with its address and the remedy.
func TestTypedNeedsAnAnswer(t *testing.T) {
	hung, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hung.Close() }()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	for name, c := range map[string]struct{ server, want string }{
		"hung":    {"http://" + hung.Addr().String(), "does not answer in time"},
		"gone":    {"http://" + gone.Addr().String(), "connection refused"},
		"refuses": {refuses.URL, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: " + c.server + "}}]\nusers: [{name: u, user: {}}]\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, _, err := Typed(t.Context(), config.Config{Kubeconfig: path})
			if took := time.Since(start); took > 3*answerWithin {
				t.Errorf("it took %s", took)
			}
			if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.server)) {
				t.Errorf("error %v, want %q and %s", err, c.want, c.server)
			}
		})
	}
}
