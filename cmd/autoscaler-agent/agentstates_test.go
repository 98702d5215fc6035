package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
)

// TestAgentStates asks agents that cannot answer, for one reason each: the command fails with one line
// that names the reason, and gives no order.
func TestAgentStates(t *testing.T) {
	fails := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(localapi.VersionHeader, "v0.0.9")
			http.Error(w, text, code)
		}
	}
	for name, c := range map[string]struct {
		agent http.Handler
		want  string
	}{
		"has read nothing":      {fails(http.StatusServiceUnavailable, "the agent has not read the cluster yet"), "autoscaler-agent: the agent has not read the cluster yet\n"},
		"is older":              {fails(http.StatusNotFound, "404 page not found"), "does not answer this question (404 page not found): its version is v0.0.9, this program's is " + version.Current()},
		"takes another method":  {fails(http.StatusMethodNotAllowed, "Method Not Allowed"), "its version is v0.0.9"},
		"answers something new": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `["new"]`) }), "cannot be read: json: cannot unmarshal array into Go value of type "},
		"is cut off":            {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"at": `) }), "cannot be read: unexpected EOF"},
		"panics":                {http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "no agent answers on "},
	} {
		socket := socketWith(t, c.agent)
		for _, line := range []string{"status", "explain pod a/b", "explain csr c", "nodes", "nodes --group w", "rollout status", "rollout pause w", "rollout resume w", "rollout start w", "rollout back w", "reload"} {
			var out, errout bytes.Buffer
			code := execute(t.Context(), append(strings.Fields(line), "--socket", socket), &out, &errout)
			if said := errout.String(); code != exitFailed || !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1 || out.Len() > 0 {
				t.Errorf("an agent that %s: %s: code %d, %q, %q; want %d and %q", name, line, code, out.String(), said, exitFailed, c.want)
			}
		}
	}
}

// TestOrderForAnotherGroup: an agent that answers for all groups, or for none, gets no order: the group
// of an order without a name would be all of them.
func TestOrderForAnotherGroup(t *testing.T) {
	for _, answer := range []string{`{"rollouts": []}`, `{"rollouts": [{"group": "a"}]}`, `{"rollouts": [{"group": "a"}, {"group": "w"}]}`, `{}`} {
		socket := socketWith(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
		for _, order := range []string{"pause", "resume", "start", "back"} {
			var out, errout bytes.Buffer
			code := execute(t.Context(), []string{"rollout", order, "w", "--socket", socket}, &out, &errout)
			if code != exitFailed || errout.String() != "autoscaler-agent: rollout: there is no node group w\n" {
				t.Errorf("%s: %s: code %d, %s", answer, order, code, errout.String())
			}
		}
	}
}

// TestNoWayBack: rollout back asks no cloud where the agent knows no former source, or the cloud has no name for it.
func TestNoWayBack(t *testing.T) {
	for answer, want := range map[string]string{
		`{"group": "w"}`: "the provider of group w does not tell what its machines are started from",
		`{"group": "w", "source": "b", "sources": [{"source": "b", "machines": 3, "present": true}, {"source": "", "machines": 2}]}`:                                                                                                                            "no machine of group w is of another source than the present one",
		`{"group": "w", "source": "b", "sources": [{"source": "b", "machines": 1, "present": true}, {"source": "a", "machines": 3, "differences": [{"property": "flavor", "is": "m1", "wanted": "m2"}, {"property": "image", "is": "old", "wanted": "new"}]}]}`: "as it was: flavor: m1 (now m2); image: old (now new)",
	} {
		socket := socketWith(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"rollouts": [%s]}`, answer) }))
		var out, errout bytes.Buffer
		if code := execute(t.Context(), []string{"rollout", "back", "w", "--socket", socket}, &out, &errout); code != exitFailed || !strings.Contains(errout.String(), want) || out.Len() > 0 {
			t.Errorf("%s: code %d, %q, %q", answer, code, out.String(), errout.String())
		}
	}
}

// TestLongReason: a reason that the Lease has no room for is refused before anything is asked.
func TestLongReason(t *testing.T) {
	for n, want := range map[int]string{500: "no agent answers on /does/not/exist", 501: "--reason has 501 bytes: write at most 500"} {
		var out, errout bytes.Buffer
		execute(t.Context(), []string{"rollout", "pause", "w", "--reason", strings.Repeat("x", n), "--socket", "/does/not/exist"}, &out, &errout)
		if !strings.Contains(errout.String(), want) {
			t.Errorf("%d bytes: %s", n, errout.String())
		}
	}
}

// TestStatusOfAnotherVersion: an upgrade without a restart is told.
func TestStatusOfAnotherVersion(t *testing.T) {
	for theirs, want := range map[string]string{version.Current(): "", "v0.0.9": "its version is v0.0.9"} {
		socket := socketWith(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(localapi.Status{Version: theirs})
		}))
		var out, errout bytes.Buffer
		code := execute(t.Context(), []string{"status", "--socket", socket}, &out, &errout)
		if code != exitOK || (errout.Len() > 0) != (want != "") || !strings.Contains(errout.String(), want) {
			t.Errorf("%s: code %d, %q", theirs, code, errout.String())
		}
	}
}

// TestPermission: whatever may not be opened, the line says what to do about it, once.
func TestPermission(t *testing.T) {
	for _, err := range []error{
		failed("userdata render", fmt.Errorf("read a hook: %w", &os.PathError{Op: "open", Path: "hook.sh", Err: syscall.EACCES})),
		noAnswer("/run/a.sock", &net.OpError{Op: "dial", Err: syscall.EACCES}),
	} {
		var errout bytes.Buffer
		if code := printError(&errout, err); code != exitFailed || strings.Count(errout.String(), "use sudo") != 1 || strings.Count(errout.String(), "\n") != 1 {
			t.Errorf("code %d, %s", code, errout.String())
		}
	}
}

func TestNoAnswer(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", err)}
	}
	for socket, c := range map[string]struct {
		err  error
		want string
	}{
		"/run/a.sock": {dial(syscall.EACCES), "may not be opened: dial unix: connect: permission denied (use sudo, or join the group autoscaler-agent)"},
		"/run/b.sock": {dial(syscall.ENOENT), "no agent answers on /run/b.sock"},
		file:          {dial(syscall.ECONNREFUSED), file + " is no socket"},
		dir:           {dial(syscall.ECONNREFUSED), dir + " is no socket"},
		"/run/c.sock": {errors.New("malformed HTTP response"), "no agent answers on /run/c.sock: malformed HTTP response"},
	} {
		if got := noAnswer(socket, c.err).Error(); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", socket, got, c.want)
		}
	}
}
