package openstack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Credential is an application credential of user demo.
type Credential struct{ ID, Secret string }

// Restrict makes an application credential that is held to access rules, as Keystone takes
// them.
func (s *Stack) Restrict(ctx context.Context, rules any) (Credential, error) {
	var list struct{ Users []struct{ ID string } }
	if err := s.ask(ctx, s.seed.admin, "GET", s.url("keystone", "/v3/users?name=demo"), nil, &list); err != nil {
		return Credential{}, err
	}
	var made struct {
		Credential Credential `json:"application_credential"`
	}
	err := s.ask(ctx, s.seed.demo, "POST", s.url("keystone", "/v3/users/"+list.Users[0].ID+"/application_credentials"),
		object{"application_credential": object{"name": fmt.Sprintf("restricted-%d", time.Now().UnixNano()), "access_rules": rules}}, &made)
	return made.Credential, err
}

// Try makes one request with a credential's token, and returns the status of its answer. The
// path is sent as it is written.
func (s *Stack) Try(ctx context.Context, c Credential, method, service, path string) (int, error) {
	login := object{"auth": object{"identity": object{"methods": []string{"application_credential"}, "application_credential": object{"id": c.ID, "secret": c.Secret}}}}
	raw, err := json.Marshal(login)
	if err != nil {
		return 0, err
	}
	answer, err := http.Post(s.url("keystone", "/v3/auth/tokens"), "application/json", bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	answer.Body.Close()
	token := answer.Header.Get("X-Subject-Token")
	if token == "" {
		return 0, fmt.Errorf("no token of Keystone: %s", answer.Status)
	}
	q, err := http.NewRequestWithContext(ctx, method, s.url(service, path), bytes.NewReader([]byte("{}")))
	if err != nil {
		return 0, err
	}
	q.Header.Set("X-Auth-Token", token)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("X-Subject-Token", token) // for Keystone's own question
	if answer, err = http.DefaultClient.Do(q); err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// Found is the ID of the first object of a list of demo's own.
func (s *Stack) Found(ctx context.Context, service, path, list string) (string, error) {
	var doc map[string]json.RawMessage
	if err := s.ask(ctx, s.seed.demo, "GET", s.url(service, path), nil, &doc); err != nil {
		return "", err
	}
	var found []struct{ ID string }
	if err := json.Unmarshal(doc[list], &found); err != nil || len(found) == 0 {
		return "", fmt.Errorf("%s: %d of %s: %w", path, len(found), list, err)
	}
	return found[0].ID, nil
}

// Project is demo's ID.
func (s *Stack) Project() string { return s.seed.Project }

// Active waits until a server runs.
func (s *Stack) Active(ctx context.Context, id string) (out Server, err error) {
	err = s.until(ctx, "server "+id+" runs", func() error {
		var doc struct{ Server Server }
		if err := s.ask(ctx, s.seed.admin, "GET", s.url("nova", "/v2.1/servers/"+id), nil, &doc); err != nil {
			return err
		}
		if out = doc.Server; out.Status != "ACTIVE" {
			return fmt.Errorf("it is %s", out.Status)
		}
		return nil
	})
	return out, err
}
