package clients

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// TestBadKubeconfig: each mistake is one line that names the file, what is wrong, and the
// variable that names another file. None makes the reader wait.
func TestBadKubeconfig(t *testing.T) {
	const good = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: s3cret}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
	cluster := func(with string) string {
		return strings.Replace(good, `server: "https://127.0.0.1:1"`, with, 1)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	read := func(text string) error {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Rest(config.Config{Kubeconfig: path}, false)
		return err
	}
	if err := read(good); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":  "it is empty",
		"x": "",
		strings.Replace(good, "current-context: x", "", 1):                          "no current-context",
		strings.Replace(good, "current-context: x", "current-context: a", 1):        `current-context is "a"`,
		strings.Replace(good, "cluster: c,", "cluster: d,", 1):                      `names the cluster "d"`,
		strings.Replace(good, "user: u}", "user: w}", 1):                            `names the user "w"`,
		cluster(`server: "127.0.0.1:port"`):                                         "write https://HOST:PORT",
		cluster(`server: "ftp://127.0.0.1"`):                                        "write https://HOST:PORT",
		cluster(`server: "https://"`):                                               "write https://HOST:PORT",
		cluster(`server: "https://a:1", certificate-authority-data: "aGVsbG8="`):    "holds no certificate",
		cluster(`server: "https://a:1", certificate-authority-data: "%"`):           "base64",
		cluster(`server: "https://a:1", certificate-authority: /does/not/exist/ca`): "/does/not/exist/ca",
		strings.Replace(good, "kind: Config", "\tkind: Config", 1):                  "tab",
		strings.Repeat("# x\n", mostKubeconfig/4+1):                                 "is it the right file?",
	} {
		err := read(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "AUTOSCALER_KUBECONFIG") ||
			strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%.300q: %v, want %q", text, err, want)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Rest(config.Config{Kubeconfig: path}, false); err == nil || !strings.Contains(err.Error(), "a named pipe") {
		t.Errorf("a named pipe: %v", err)
	}
}
