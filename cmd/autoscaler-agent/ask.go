package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

func socketFlag(fs *flag.FlagSet) *string {
	return fs.String("socket", "", "the agent's `socket` (default: AUTOSCALER_SOCKET's)")
}

// socketOf fills in the configured socket where none was named.
func socketOf(socket *string, envFile string) error {
	if *socket != "" {
		return nil
	}
	cfg, err := load(envFile)
	if err != nil {
		return err
	}
	*socket = cfg.Socket
	return nil
}

// get asks the running agent; the caller closes the body.
func get(ctx context.Context, socket, path string) (io.ReadCloser, error) {
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		if request, ok := errors.AsType[*url.Error](err); ok {
			err = request.Err
		}
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // the status says enough without it
		return nil, errors.Join(fmt.Errorf("it answers %s: %s", resp.Status, strings.TrimSpace(string(text))), resp.Body.Close())
	}
	return resp.Body, nil
}

// ask reads the running agent's answer into v.
func ask(ctx context.Context, socket, path string, v any) error {
	body, err := get(ctx, socket, path)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // read to its end
	if err := json.NewDecoder(body).Decode(v); err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	return nil
}

// silent tells that nobody listens, and not that an agent answers badly.
func silent(err error) bool {
	_, dial := errors.AsType[*net.OpError](err)
	return dial
}

func noAnswer(errout io.Writer, socket string, err error) int {
	fmt.Fprintf(errout, "autoscaler-agent: no agent answers on %s: %v (systemctl status autoscaler-agent tells whether it runs; --socket names another)\n", socket, err)
	return exitFailed
}
