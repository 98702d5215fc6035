package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

func socketFlag(c *cobra.Command) *string {
	return c.Flags().String("socket", "", "path of the running agent's `socket` (default AUTOSCALER_SOCKET, then the unit's)")
}

// socketOf fills in the configured socket where none was named. It needs no other setting.
func socketOf(socket *string, envFile string) {
	if *socket == "" {
		*socket = config.SocketPath(envFile)
	}
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

// nobodyListens tells an agent that does not run from one that answers badly.
func nobodyListens(err error) bool {
	_, dial := errors.AsType[*net.OpError](err)
	return dial && !errors.Is(err, fs.ErrPermission)
}

// noAnswer is the failure to ask the running agent.
func noAnswer(socket string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return failed("", fmt.Errorf("the agent's socket %s may not be opened: %w (use sudo, or join the group autoscaler-agent)", socket, err))
	}
	return failed("", fmt.Errorf("no agent answers on %s: %w (systemctl status autoscaler-agent tells whether it runs; --socket names another)", socket, err))
}

// lookFromHere says that a command goes on without the running agent.
func lookFromHere(errout io.Writer, socket string) {
	fmt.Fprintf(errout, "no agent answers on %s: looking at the cluster and the cloud from here\n", socket)
}
