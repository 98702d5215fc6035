package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
)

// socketWith is a socket on which the handler answers.
func socketWith(t *testing.T, h http.Handler) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return path
}

// TestStatusWatch: the status and the day are printed again and again until the context
// ends, an agent that went away is waited for, and one that never answered is an error.
func TestStatusWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	asked := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 2 {
			http.Error(w, "restarting", http.StatusServiceUnavailable)
			cancel()
			return
		}
		_ = json.NewEncoder(w).Encode(localapi.Status{Version: "v1", Node: "leader", Groups: []localapi.GroupStatus{{ID: "workers", Warnings: []string{"no price"}}}})
	})
	mux.HandleFunc("GET "+localapi.HistoryPath, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(history.View{Start: time.Now(), Pending: []int{0, 3}})
	})
	mux.HandleFunc("GET "+localapi.FleetPath, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("most") == "" {
			http.Error(w, "all of them?", http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode([]fleet.Box{{Count: 1, Machine: fleet.Machine{Group: "workers", State: fleet.Ready, CPU: 42}}})
	})
	socket := socketWith(t, mux)
	var out bytes.Buffer
	if err := watchStatus(ctx, socket, &out); err != nil || asked != 2 {
		t.Errorf("%v after %d looks", err, asked)
	}
	for _, want := range []string{"v1 on leader", "workers: no price", "pending pods  ▁█", "fleet:  R 1 ready", "R4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if err := watchStatus(context.Background(), socket+"nobody", &out); err == nil || !strings.Contains(err.Error(), "no agent answers on") {
		t.Errorf("nobody: %v", err)
	}
}

// TestStatusHTML: the page is written to a file that only its owner reads.
func TestStatusHTML(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+localapi.PagePath, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<!doctype html>")) })
	socket := socketWith(t, mux)
	file := filepath.Join(t.TempDir(), "day.html")
	var out bytes.Buffer
	if err := save(context.Background(), socket, localapi.PagePath, file, "", &out); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil || string(data) != "<!doctype html>" {
		t.Errorf("%q %v", data, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if err := save(context.Background(), socket, localapi.PagePath, filepath.Join(t.TempDir(), "no", "day.html"), "", &out); err == nil {
		t.Error("a directory that is not there is no error")
	}
}
