package clients

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

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

// TestKubeconfigIsReadAsByClientGo: the paths of certificates and commands are relative to the
// file, wherever the agent is started, and everything else is as client-go reads it.
func TestKubeconfigIsReadAsByClientGo(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	for name, text := range map[string]string{"ca.crt": "", "u.crt": "", "u.key": "", "kubeconfig": `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1/api", certificate-authority: ca.crt, tls-server-name: api, proxy-url: "http://127.0.0.1:2"}}]
users:
- {name: files, user: {client-certificate: u.crt, client-key: u.key}}
- {name: command, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, interactiveMode: Never, provideClusterInfo: true}}}
- {name: token, user: {token: s3cret, as: other}}
contexts: [{name: x, context: {cluster: c, user: USER}}]
current-context: x
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]string{"files": filepath.Join(dir, "u.key"), "command": filepath.Join(dir, "login"), "token": "other"} {
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), "USER", user, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := fromFile(path)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		found := got.KeyFile + got.Impersonate.UserName
		if got.ExecProvider != nil {
			found += got.ExecProvider.Command
		}
		if got.CAFile != filepath.Join(dir, "ca.crt") || found != want {
			t.Errorf("%s: CA in %s, %q, want %q", user, got.CAFile, found, want)
		}
		at := &url.URL{Scheme: "https", Host: "a"}
		proxy, err1 := got.Proxy(&http.Request{URL: at})
		their, err2 := theirs.Proxy(&http.Request{URL: at})
		if err1 != nil || err2 != nil || *proxy != *their {
			t.Errorf("%s: proxy %v, %v, client-go's is %v, %v", user, proxy, err1, their, err2)
		}
		got.Proxy, theirs.Proxy = nil, nil // functions cannot be compared
		if !reflect.DeepEqual(got, theirs) {
			t.Errorf("%s: read as %v, by client-go as %v", user, got, theirs)
		}
	}
}
