package bootstrap

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func join() Join {
	return Join{Token: "abcdef.0123456789abcdef", CAHashes: []string{"sha256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("b", 64)},
		Endpoint: "[2001:db8::1]:6443", Expires: noon, Kubernetes: "v1.36.3"}
}

func TestRender(t *testing.T) {
	got, err := Render(join())
	want := "JOIN_TOKEN=abcdef.0123456789abcdef\n" +
		"JOIN_CERT_HASH=sha256:" + strings.Repeat("a", 64) + ",sha256:" + strings.Repeat("b", 64) + "\n" +
		"JOIN_ENDPOINT=[2001:db8::1]:6443\nJOIN_TOKEN_EXPIRES=2026-11-21T12:00:00Z\nJOIN_KUBERNETES_VERSION=v1.36.3\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q %v, want %q", got, err, want)
	}
	// A shell reads the very same values.
	script := string(got) + `printf '%s|%s' "$JOIN_TOKEN" "$JOIN_ENDPOINT"`
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil || string(out) != join().Token+"|"+join().Endpoint {
		t.Errorf("sh reads %q %v", out, err)
	}
}

// TestRenderWithoutToken: between growths the file says so in a way that a shell reads.
func TestRenderWithoutToken(t *testing.T) {
	j := join()
	j.Token, j.Expires = "", time.Time{}
	got, err := Render(j)
	if err != nil || !strings.HasPrefix(string(got), "JOIN_TOKEN=\n") || !strings.Contains(string(got), "\nJOIN_TOKEN_EXPIRES=\n") {
		t.Errorf("%q %v", got, err)
	}
	if out, err := exec.Command("sh", "-eu", "-c", string(got)+`printf '%s|%s' "$JOIN_TOKEN" "$JOIN_ENDPOINT"`).CombinedOutput(); err != nil || string(out) != "|"+j.Endpoint {
		t.Errorf("sh reads %q %v", out, err)
	}
}

func TestRenderRefuses(t *testing.T) {
	for name, change := range map[string]func(*Join){
		"no hash":     func(j *Join) { j.CAHashes = nil },
		"a newline":   func(j *Join) { j.Endpoint = "a:1\nLD_PRELOAD=x" },
		"a quote":     func(j *Join) { j.Endpoint = `a"b:1` },
		"a dollar":    func(j *Join) { j.Kubernetes = "$(id)" },
		"a space":     func(j *Join) { j.Kubernetes = "v1 v2" },
		"a backslash": func(j *Join) { j.Kubernetes = `v1\n` },
	} {
		t.Run(name, func(t *testing.T) {
			j := join()
			change(&j)
			if got, err := Render(j); err == nil {
				t.Errorf("rendered %q", got)
			} else if strings.Contains(err.Error(), "0123456789abcdef") {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

func TestJoinKeepsItsSecret(t *testing.T) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(verb, join()); strings.Contains(s, "0123456789abcdef") {
			t.Errorf("%s tells the secret: %s", verb, s)
		}
	}
}
