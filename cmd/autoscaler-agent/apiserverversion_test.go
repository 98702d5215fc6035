package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSkewIsRefused: a kubelet that may not join the API server is refused by render and is a
// fault of lint, whichever of the three sources tells the server's version.
func TestSkewIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"major":"1","minor":"34","gitVersion":"v1.34.4"}`)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\nclusters: [{name: c, cluster: {server: '" + server.URL + "'}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env, none := writeEnv(t, workerEnv), filepath.Join(t.TempDir(), "none")
	old := writeEnv(t, strings.Replace(workerEnv, "v1.36.3", "v1.33.1", 1))
	script := filepath.Join(t.TempDir(), "worker.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nKUBERNETES_VERSION=v1.35.4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"render", "--join-file", env, "--kubernetes-version", "v1.33.13"}, 0, ""},
		{[]string{"render", "--join-file", env, "--kubernetes-version", "v1.32.13"}, 2, "--kubernetes-version: v1.32.13 for the API server's v1.36.3: a kubelet of 1.32 is 4 minors older"},
		{[]string{"render", "--join-file", old, "--kubernetes-version", "v1.34.4"}, 2, "a kubelet of 1.34 is newer than the API server, which has 1.33"},
		{[]string{"render", "--join-file", old, "--kubernetes-version", "v1.34.4", "--api-server-version", "v1.34"}, 0, ""},
		{[]string{"render", "--join-file", env, "--kubeconfig", kubeconfig}, 1, "kubernetesVersion: v1.36.3 for the API server's v1.34.4"},
		{[]string{"render", "--join-file", env, "--kubernetes-version", "v1.32.13", "--kubeconfig", kubeconfig}, 0, ""},
		{[]string{"render", "--join-file", env, "--kubeconfig", none}, 1, "or give it with --api-server-version"},
		{[]string{"render", "--join-file", env, "--kubeconfig", kubeconfig, "--api-server-version", "v1.34"}, 2, "api-server-version"},
		{[]string{"render", "--join-file", env, "--api-server-version", "newest"}, 2, "write for example v1.36.3"},
		{[]string{"lint", "--join-file", env, script}, 0, "0 faults, 0 warnings, for an API server of v1.36.3\n"},
		{[]string{"lint", "--join-file", old, script}, 1, "W13 fault: a kubelet of 1.35 is newer than the API server, which has 1.33"},
		{[]string{"lint", "--join-file", none, script}, 0, "0 faults, 0 warnings\n"},
		{[]string{"lint", "--join-file", none, "--kubeconfig", kubeconfig, script}, 1, "W13 fault"},
		{[]string{"lint", "--join-file", old, "--api-server-version", "v1.37.0", script}, 0, "for an API server of v1.37.0\n"},
		{[]string{"lint", "--join-file", writeEnv(t, "what\n"), script}, 1, "line 1: want NAME=VALUE"},
		{[]string{"lint", "--join-file", none, "--kubernetes-version", "v1.36.3", "--api-server-version", "v1.35.1", script}, 1, "W13 fault: a kubelet of 1.36"},
	} {
		code, out, errout := runUserdata(t, c.args...)
		if code != c.code || !strings.Contains(out+errout, c.want) {
			t.Errorf("%v: exit %d, %q, %q; want exit %d with %q", c.args, code, out[:min(300, len(out))], errout, c.code, c.want)
		}
	}
}
