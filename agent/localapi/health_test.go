package localapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/internal/heartbeat"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	cloud "github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// idle is a server of an agent whose caches are empty and whose cloud has one group.
func idle(t *testing.T) *Server {
	t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	log := quiet.WithField("service", "test")
	groups := cloud.New(time.Now())
	groups.AddGroup(cluster.NodeGroup{ID: "workers", Min: 1, Max: 5, Target: 2, Template: cluster.Template{Spec: "v1"}})
	reads := inventory.New(groups, time.Second, time.Minute, time.Minute, log)
	client := kubetest.Client(fake.NewClientset())
	o, err := observe.New(observe.Config{StaleAfter: time.Minute, Schedulers: []string{"default-scheduler"}}, client, kube.NewInformers(client, nil), reads, log)
	if err != nil {
		t.Fatal(err)
	}
	o.APIServerAnswered()
	return &Server{Node: "leader<1>", Heartbeats: &heartbeat.Monitor{}, Metrics: report.NewMetrics(), Inventory: reads, Observer: o, Unready: func() string { return "" }}
}

func get(h http.Handler, path string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// TestHealthAndReadinessDiffer: what a restart mends fails /healthz alone, what it does not
// mend fails /readyz alone.
func TestHealthAndReadinessDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := idle(t)
		h := s.metrics()
		want := func(what string, health, ready int, says string) {
			t.Helper()
			code, alive := get(h, "/healthz")
			if other, _ := get(h, "/health-check"); code != health || other != health {
				t.Errorf("%s: /healthz answers %d and /health-check %d, want %d", what, code, other, health)
			}
			code, can := get(h, "/readyz")
			if code != ready || !strings.Contains(alive+can, says) {
				t.Errorf("%s: /readyz answers %d %q, want %d and %q", what, code, can, ready, says)
			}
		}
		s.Unready = func() string { return "the caches are not filled yet" }
		want("at the start", 200, 503, "caches")
		s.Unready = func() string { return "" }
		want("before the first read", 200, 503, "node groups are not read yet")
		if _, err := s.Inventory.Groups(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		want("at work", 200, 200, "ready")
		time.Sleep(2 * time.Minute)
		want("without an API server", 200, 503, "the API server has not answered")
		s.Observer.APIServerAnswered()
		s.Heartbeats.Register("scaler", time.Minute)
		time.Sleep(59 * time.Second)
		want("in its time", 200, 200, "ready")
		time.Sleep(2 * time.Second)
		s.Observer.APIServerAnswered()
		want("with a service that hangs", 500, 200, "scaler")
	})
}

// TestLandingPage: the address itself answers with links, and names are escaped.
func TestLandingPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := idle(t).metrics()
		code, page := get(h, "/")
		if code != 200 || strings.Contains(page, "leader<1>") {
			t.Errorf("%d %s", code, page)
		}
		for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
			if !strings.Contains(page, `href="`+path+`"`) {
				t.Errorf("no link to %s", path)
			}
		}
		if code, _ := get(h, "/status"); code != 404 {
			t.Errorf("the address of the metrics tells the status: %d", code)
		}
		if code, text := get(h, "/metrics"); code != 200 || !strings.Contains(text, "autoscaler_build_info{") || !strings.Contains(text, "process_resident_memory_bytes") {
			t.Errorf("/metrics answers %d", code)
		}
	})
}
