package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// socketFile lies in the control plane's own directory, which only its owner enters.
const socketFile = "control.sock"

// report is what status is told.
type report struct {
	Endpoint   string `json:"endpoint"`
	Kubeconfig string `json:"kubeconfig"`
	Parts      []row  `json:"parts"`
}

type row struct {
	Name  string `json:"name"`
	State string `json:"state"`
	PID   int    `json:"pid,omitempty"`
	Log   string `json:"log"`
}

// serve answers the other commands. down yields a channel to answer on when
// somebody asks for the end.
func serve(cp *controlplane.ControlPlane) (down chan chan error, closeSocket func(), err error) {
	l, err := net.Listen("unix", filepath.Join(cp.Dir(), socketFile))
	if err != nil {
		return nil, nil, fmt.Errorf("listen for commands (a socket's path has about 100 characters at most: choose a shorter --dir): %w", err)
	}
	down = make(chan chan error)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		out := report{Endpoint: cp.Endpoint(), Kubeconfig: cp.Kubeconfig()}
		for _, name := range controlplane.Parts() {
			out.Parts = append(out.Parts, row{Name: name, State: cp.State(name), PID: cp.PID(name), Log: cp.LogFile(name)})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out) // the asker went away: nobody is left to tell
	})
	mux.HandleFunc("POST /down", func(w http.ResponseWriter, r *http.Request) {
		answer := make(chan error, 1)
		select {
		case down <- answer:
			reply(w, <-answer, "stopped")
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST /{verb}/{part}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("part")
		reply(w, act(r.Context(), cp, r.PathValue("verb"), name), name+" is "+cp.State(name))
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go srv.Serve(l)
	return down, func() {
		// The one who asked for the end gets the answer first.
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = srv.Shutdown(ctx)
	}, nil
}

func act(ctx context.Context, cp *controlplane.ControlPlane, verb, part string) error {
	switch verb {
	case "start":
		return cp.StartPart(ctx, part)
	case "stop":
		return cp.StopPart(ctx, part)
	case "kill":
		return cp.KillPart(part)
	case "pause":
		return cp.PausePart(part)
	case "resume":
		return cp.ResumePart(part)
	}
	return fmt.Errorf("no such command %q", verb)
}

func reply(w http.ResponseWriter, err error, done string) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	fmt.Fprintln(w, done)
}

// ask sends one command to the control plane that runs in dir and prints its answer.
func ask(ctx context.Context, dir, method, path string, stdout io.Writer) error {
	body, err := talk(ctx, dir, method, path)
	if err != nil {
		return err
	}
	_, err = stdout.Write(body)
	return err
}

func talk(ctx context.Context, dir, method, path string) ([]byte, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(dir, socketFile))
	}}}
	req, err := http.NewRequestWithContext(ctx, method, "http://controlplane"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			return nil, fmt.Errorf("no control plane runs in %s: start one with `controlplane up --dir %s`", dir, dir)
		}
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(string(body)))
	}
	return body, nil
}

func status(ctx context.Context, dir string, stdout io.Writer) error {
	body, err := talk(ctx, dir, http.MethodGet, "/status")
	if err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("read status: %w", err)
	}
	fmt.Fprintf(stdout, "endpoint    %s\nkubeconfig  %s\n\n", r.Endpoint, r.Kubeconfig)
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PART\tSTATE\tPID\tLOG")
	for _, p := range r.Parts {
		pid := "-"
		if p.PID != 0 {
			pid = fmt.Sprint(p.PID)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Name, p.State, pid, p.Log)
	}
	return w.Flush()
}
