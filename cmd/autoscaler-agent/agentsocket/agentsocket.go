// Package agentsocket asks the running agent over its local socket. It refuses to guess where the
// socket is, and to ask anything but that agent.
package agentsocket

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
)

// Refused is an answer of the running agent that is none to the question.
type Refused struct {
	// Code is HTTP's, Text is for people, Version is the agent's, where it tells one.
	Code          int
	Text, Version string
}

func (r *Refused) Error() string { return r.Text }

// Unknown tells whether the agent does not know the question, or answers another one: its program has
// another version.
func (r *Refused) Unknown() bool {
	return r.Code == http.StatusOK || r.Code == http.StatusMethodNotAllowed || r.Code == http.StatusNotFound && r.Text == "404 page not found" // net/http's own words
}

// Get asks the running agent; the caller closes the body.
func Get(ctx context.Context, socket, path string) (io.ReadCloser, error) {
	resp, err := request(ctx, http.MethodGet, socket, path)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

func request(ctx context.Context, method, socket, path string) (*http.Response, error) {
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
		_ = resp.Body.Close()                                  // read as far as it is told
		return nil, &Refused{resp.StatusCode, cmp.Or(strings.TrimSpace(string(text)), resp.Status), resp.Header.Get(localapi.VersionHeader)}
	}
	return resp, nil
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
	resp, err := request(ctx, method, socket, path)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		return &Refused{resp.StatusCode, "its answer cannot be read: " + err.Error(), resp.Header.Get(localapi.VersionHeader)}
	}
	return nil
}

// NotRunning tells whether err means that no agent listens on the socket. A running agent that
// answers with an error, and a socket without permission, are not that.
func NotRunning(err error) bool {
	_, dial := errors.AsType[*net.OpError](err)
	return dial && !errors.Is(err, fs.ErrPermission)
}
