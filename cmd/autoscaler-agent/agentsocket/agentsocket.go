// Package agentsocket asks the running agent over its local socket. It refuses to guess where the
// socket is, and to ask anything but that agent.
package agentsocket

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
)

// Get asks the running agent; the caller closes the body.
func Get(ctx context.Context, socket, path string) (io.ReadCloser, error) {
	return request(ctx, http.MethodGet, socket, path)
}

func request(ctx context.Context, method, socket, path string) (io.ReadCloser, error) {
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, nil)
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

// Ask reads the running agent's answer into v.
func Ask(ctx context.Context, socket, path string, v any) error {
	return ask(ctx, http.MethodGet, socket, path, v)
}

// Post tells the running agent to do something and reads its answer into v.
func Post(ctx context.Context, socket, path string, v any) error {
	return ask(ctx, http.MethodPost, socket, path, v)
}

func ask(ctx context.Context, method, socket, path string, v any) error {
	body, err := request(ctx, method, socket, path)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // read to its end
	if err := json.NewDecoder(body).Decode(v); err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	return nil
}

// NotRunning tells whether err means that no agent listens on the socket. A running agent that
// answers with an error, and a socket without permission, are not that.
func NotRunning(err error) bool {
	_, dial := errors.AsType[*net.OpError](err)
	return dial && !errors.Is(err, fs.ErrPermission)
}
