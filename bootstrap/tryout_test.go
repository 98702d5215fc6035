package bootstrap

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// TestTryUserData: the fault of user data that no machine can join with is told in one clause, and
// no token stands in it.
func TestTryUserData(t *testing.T) {
	for name, c := range map[string]struct {
		stage  func(*stage)
		change func(*userdata.Held)
		want   string
	}{
		"good":                     {nil, func(*userdata.Held) {}, ""},
		"attested":                 {nil, func(h *userdata.Held) { h.Join.Token, h.Join.Attest = "", "leader:6444" }, ""},
		"endpoint":                 {nil, func(h *userdata.Held) { h.Join.Endpoint = "127.0.0.1:9" }, "refuses the connection"},
		"DNS":                      {nil, func(h *userdata.Held) { h.Join.Endpoint = "no-such-name.invalid:6443" }, "does not resolve"},
		"port dropped":             {nil, func(h *userdata.Held) { h.Join.Endpoint = silent(t) }, "drops the packets"},
		"token ended":              {nil, func(h *userdata.Held) { h.Join.Token = poolID(3) + ".0123456789abcdef" }, "token asa003 of its user data has ended"},
		"token of another cluster": {nil, func(h *userdata.Held) { h.Join.Token = "zzzzzz.0123456789abcdef" }, "is none of this cluster"},
		"the same ID elsewhere":    {nil, func(h *userdata.Held) { h.Join.Token = "abcdef.fedcba9876543210" }, "token abcdef of its user data is of another cluster"},
		"pin wrong":                {nil, func(h *userdata.Held) { h.Join.CACertHashes = []string{"sha256:" + strings.Repeat("0", 64)} }, "the pin in its user data is not that of the cluster's CA"},
		"newer":                    {nil, func(h *userdata.Held) { h.KubernetesVersion = "v1.37.0" }, "is newer than the API server's"},
		"four older":               {nil, func(h *userdata.Held) { h.KubernetesVersion = "v1.32.9" }, "more than three minor versions older"},
		"three older":              {nil, func(h *userdata.Held) { h.KubernetesVersion = "v1.33.1" }, ""},
		"refused":                  {func(s *stage) { s.denied = "/selfsubjectreviews" }, func(*userdata.Held) {}, "refuses token abcdef"},
		"not public":               {func(s *stage) { s.denied = "/cluster-info" }, func(*userdata.Held) {}, "does not give cluster-info"},
		"a web server":             {nil, func(h *userdata.Held) { h.Join.Endpoint = website(t, http.StatusNotFound) }, "leads to no API server: a web server says 404 Not Found"},
		"a page for everything":    {nil, func(h *userdata.Held) { h.Join.Endpoint = website(t, http.StatusOK) }, "leads to no API server: a web server says 200 OK"},
		"an empty load balancer":   {nil, func(h *userdata.Held) { h.Join.Endpoint = website(t, http.StatusServiceUnavailable) }, "as without a healthy API server behind it"},
		"HTTP":                     {nil, func(h *userdata.Held) { h.Join.Endpoint = address(t, httptest.NewServer(http.NotFoundHandler())) }, "leads to no API server: a web server without TLS"},
		"SSH":                      {nil, func(h *userdata.Held) { h.Join.Endpoint = banner(t) }, "leads to no API server: it does not speak TLS"},
		"no settings":              {func(s *stage) { s.denied = "/kubeadm-config" }, func(*userdata.Held) {}, "does not work: read kubeadm's settings"},
	} {
		t.Run(name, func(t *testing.T) {
			_, join := newStage(t, c.stage)
			h := userdata.Held{KubernetesVersion: "v1.36.1", Join: userdata.Join{Endpoint: join.Endpoint, Token: join.Token, CACertHashes: join.CAHashes}}
			c.change(&h)
			steps, f := TryUserData(t.Context(), h)
			if !strings.Contains(f.Text, c.want) || (c.want == "") != (f.Text == "") || (f.Text == "") != (f.Remedy == "") {
				t.Errorf("%+v, want %q; steps %v", f, c.want, steps)
			}
			if _, secret, ok := strings.Cut(h.Join.Token, "."); ok && strings.Contains(f.Text+f.Remedy, secret) {
				t.Error("it tells the token")
			}
		})
	}
}

// TestSlowAPIServer: an API server that takes too long says nothing of the user data, whichever step it is.
func TestSlowAPIServer(t *testing.T) {
	for _, path := range []string{"/cluster-info", "/version", "/selfsubjectreviews", "/kubeadm-config", "/certificatesigningrequests"} {
		end, answered := expiring{t.Context(), make(chan struct{})}, make(chan struct{})
		s, join := newStage(t, nil)
		s.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, path) {
				close(end.done)
				<-answered
				return
			}
			s.ServeHTTP(w, r)
		})
		_, f := TryUserData(end, userdata.Held{KubernetesVersion: "v1.36.1", Join: userdata.Join{Endpoint: join.Endpoint, Token: join.Token, CACertHashes: join.CAHashes}})
		close(answered)
		if f.Text != "" || !strings.Contains(f.Untried, "the API server is slow") {
			t.Errorf("%s: %+v", path, f)
		}
	}
}

// expiring is a context whose deadline is over once done is closed.
type expiring struct {
	context.Context
	done chan struct{}
}

func (e expiring) Done() <-chan struct{} { return e.done }

func (e expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func address(t *testing.T, s *httptest.Server) string {
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// website is a server that answers everything with a page.
func website(t *testing.T, status int) string {
	return address(t, httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, "<html>Welcome</html>")
	})))
}

// banner is a server that speaks first.
func banner(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "SSH-2.0-OpenSSH_9.2p1\r\n")
			t.Cleanup(func() { c.Close() })
		}
	}()
	return l.Addr().String()
}

// silent is an address whose queue of connections is full: the kernel drops what asks for more.
func silent(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for {
		c, err := net.DialTimeout("tcp", at, time.Second)
		if err != nil {
			return at
		}
		t.Cleanup(func() { c.Close() })
	}
}
