package openstack

import (
	"net/http"
	"strings"
	"time"
)

// Login is how somebody gets a token: a user with a password, or an application
// credential.
type Login struct {
	UserID, Username, Password string
	ProjectID, ProjectName     string
	// ApplicationID, ApplicationName and Secret are set for an application credential,
	// which acts as its user.
	ApplicationID, ApplicationName, Secret string
	Admin                                  bool
	Disabled                               bool
}

// token is one that was issued.
type token struct {
	id      string
	login   *Login
	issued  time.Time
	expires time.Time
	revoked bool
	checked time.Time // when a service last asked Keystone about it
}

type identity struct {
	ttl    time.Duration
	logins []*Login
	tokens map[string]*token
}

// The logins that every cloud has: a member of project demo, by password and by
// application credential, and an administrator.
const (
	DemoUser, DemoPassword   = "demo", "secret-of-demo"
	AdminUser, AdminPassword = "admin", "secret-of-admin"
	DemoProject              = "demo"
	demoProjectID            = "d0d0d0d0d0d04d0d8d0dd0d0d0d0d0d0"
	adminProjectID           = "ada0ada0ada04ada8adaada0ada0ada0"
	// ApplicationID and ApplicationSecret are of demo's application credential, which is
	// named autoscaler.
	ApplicationID, ApplicationSecret = "a991a991a9914a9189a9a991a991a991", "secret-of-the-application"
)

func newIdentity(ttl time.Duration) *identity {
	demo := Login{UserID: "de30de30de304de38de3de30de30de30", Username: DemoUser, Password: DemoPassword, ProjectID: demoProjectID, ProjectName: DemoProject}
	app := demo
	app.Password, app.ApplicationID, app.ApplicationName, app.Secret = "", ApplicationID, "autoscaler", ApplicationSecret
	admin := Login{UserID: "ad30ad30ad304ad38ad3ad30ad30ad30", Username: AdminUser, Password: AdminPassword, ProjectID: adminProjectID, ProjectName: "admin", Admin: true}
	return &identity{ttl: ttl, logins: []*Login{&demo, &app, &admin}, tokens: map[string]*token{}}
}

// DisableLogins refuses every login of demo, password and application credential, and
// revokes what was issued; or takes that back.
func (c *Cloud) DisableLogins(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.identity.logins {
		if l.Username == DemoUser {
			l.Disabled = on
		}
	}
	if on {
		c.identity.revoke()
	}
}

// RevokeTokens makes every token that was issued worthless; new ones are issued.
func (c *Cloud) RevokeTokens() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identity.revoke()
}

func (i *identity) revoke() {
	for _, t := range i.tokens {
		t.revoked = true
	}
}

// Tokens is how many tokens were issued.
func (c *Cloud) Tokens() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.identity.tokens)
}

// check tells whose token it is; nil: nobody's.
func (c *Cloud) check(id string) *token {
	t := c.identity.tokens[id]
	now := time.Now()
	switch {
	case t == nil || now.After(t.expires):
		return nil
	case t.revoked && (t.checked.IsZero() || now.Sub(t.checked) >= c.opts.TokenCache):
		return nil
	case !t.revoked:
		t.checked = now
	}
	return t
}

type authRequest struct {
	Auth struct {
		Identity struct {
			Methods  []string `json:"methods"`
			Password *struct {
				User authUser `json:"user"`
			} `json:"password"`
			Token *struct {
				ID string `json:"id"`
			} `json:"token"`
			Application *struct {
				ID     string   `json:"id"`
				Name   string   `json:"name"`
				Secret string   `json:"secret"`
				User   authUser `json:"user"`
			} `json:"application_credential"`
		} `json:"identity"`
		Scope *struct {
			Project *struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			} `json:"project"`
		} `json:"scope"`
	} `json:"auth"`
}

type authUser struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Password string `json:"password"`
	Domain   *struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"domain"`
}

func (u authUser) is(l *Login) bool {
	domain := u.Domain != nil && (u.Domain.ID == "default" || u.Domain.Name == "Default")
	return u.ID == l.UserID || domain && u.Name == l.Username
}

// find returns whom a request for a token is from, or why it is refused.
func (i *identity) find(q authRequest) (*Login, string) {
	id := q.Auth.Identity
	for _, l := range i.logins {
		switch {
		case id.Application != nil:
			a := id.Application
			if l.ApplicationID == "" || a.Secret != l.Secret || a.ID != l.ApplicationID && (a.Name != l.ApplicationName || !a.User.is(l)) {
				continue
			}
			if q.Auth.Scope != nil {
				return nil, "Application credentials cannot request a scope."
			}
		case id.Password != nil:
			if l.ApplicationID != "" || !id.Password.User.is(l) || id.Password.User.Password != l.Password {
				continue
			}
			if s := q.Auth.Scope; s != nil && s.Project != nil && s.Project.ID != l.ProjectID && s.Project.Name != l.ProjectName {
				continue
			}
		case id.Token != nil:
			t := i.tokens[id.Token.ID]
			if t == nil || t.login != l || t.revoked || time.Now().After(t.expires) {
				continue
			}
		default:
			continue
		}
		if !l.Disabled {
			return l, ""
		}
	}
	return nil, "The request you have made requires authentication."
}

// keystone answers /identity.
func (c *Cloud) keystone(q *call) {
	parts := strings.Split(strings.Trim(q.path, "/"), "/")
	switch {
	case len(parts) >= 4 && parts[1] == "users" && parts[3] == "application_credentials":
		c.applicationCredential(q, parts)
	case q.path == "/" || q.path == "":
		q.answer(http.StatusMultipleChoices, map[string]any{"versions": map[string]any{"values": []any{c.keystoneVersion()}}})
	case q.path == "/v3" || q.path == "/v3/":
		q.answer(http.StatusOK, map[string]any{"version": c.keystoneVersion()})
	case q.path == "/v3/auth/tokens" && q.Method == http.MethodPost:
		c.issue(q)
	case q.path == "/v3/auth/tokens" && q.Method == http.MethodGet:
		t := c.check(q.Header.Get("X-Subject-Token"))
		if c.check(q.Header.Get("X-Auth-Token")) == nil || t == nil {
			q.fail(http.StatusUnauthorized, "The request you have made requires authentication.")
			return
		}
		q.w.Header().Set("X-Subject-Token", t.id)
		q.answer(http.StatusOK, c.describeToken(t))
	case q.path == "/v3/auth/tokens" && q.Method == http.MethodDelete:
		if t := c.identity.tokens[q.Header.Get("X-Subject-Token")]; t != nil {
			t.revoked = true
		}
		q.w.WriteHeader(http.StatusNoContent)
	case q.path == "/v3/auth/catalog":
		t := c.check(q.Header.Get("X-Auth-Token"))
		if t == nil {
			q.fail(http.StatusUnauthorized, "The request you have made requires authentication.")
			return
		}
		q.answer(http.StatusOK, map[string]any{"catalog": c.catalog(t)})
	default:
		q.fail(http.StatusNotFound, "The resource could not be found.")
	}
}

func (c *Cloud) keystoneVersion() any {
	return map[string]any{"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
		"links":       []any{map[string]any{"rel": "self", "href": c.AuthURL() + "/"}},
		"media-types": []any{map[string]any{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}}}
}

func (c *Cloud) issue(q *call) {
	var body authRequest
	if !q.decode(&body) {
		return
	}
	login, why := c.identity.find(body)
	if login == nil {
		q.fail(http.StatusUnauthorized, why)
		return
	}
	now := time.Now().UTC()
	t := &token{id: "gAAAAA" + strings.ReplaceAll(newID()+newID(), "-", ""), login: login, issued: now, expires: now.Add(c.identity.ttl)}
	c.identity.tokens[t.id] = t
	q.w.Header().Set("X-Subject-Token", t.id)
	q.answer(http.StatusCreated, c.describeToken(t))
}

func (c *Cloud) describeToken(t *token) any {
	domain := map[string]any{"id": "default", "name": "Default"}
	method, role := "password", "member"
	if t.login.ApplicationID != "" {
		method = "application_credential"
	}
	if t.login.Admin {
		role = "admin"
	}
	return map[string]any{"token": map[string]any{
		"methods": []string{method}, "audit_ids": []string{t.id[len(t.id)-22:]},
		"issued_at": t.issued.Format("2006-01-02T15:04:05.000000Z"), "expires_at": t.expires.Format("2006-01-02T15:04:05.000000Z"),
		"user":    map[string]any{"id": t.login.UserID, "name": t.login.Username, "domain": domain, "password_expires_at": nil},
		"project": map[string]any{"id": t.login.ProjectID, "name": t.login.ProjectName, "domain": domain},
		"roles":   []any{map[string]any{"id": role, "name": role}}, "is_domain": false,
		"catalog": c.catalog(t),
	}}
}

// catalog lists every service of every region, each with three interfaces.
func (c *Cloud) catalog(*token) []any {
	out := []any{c.catalogEntry("identity", "keystone", func(string) string { return c.AuthURL() })}
	for _, s := range []struct{ typ, name, path string }{
		{"compute", "nova", "/compute/v2.1"}, {"image", "glance", "/image"}, {"network", "neutron", "/network"},
		{"block-storage", "cinder", "/volume/v3"},
	} {
		out = append(out, c.catalogEntry(s.typ, s.name, func(region string) string { return c.address + "/" + region + s.path }))
	}
	for typ, s := range c.services {
		out = append(out, c.catalogEntry(typ, s.name, func(region string) string { return c.address + "/" + region + s.path }))
	}
	return out
}

func (c *Cloud) catalogEntry(typ, name string, url func(region string) string) any {
	var endpoints []any
	for _, region := range c.order {
		for _, face := range []string{"public", "internal", "admin"} {
			endpoints = append(endpoints, map[string]any{"id": typ + "-" + region + "-" + face, "interface": face, "region": region, "region_id": region, "url": url(region)})
		}
	}
	return map[string]any{"id": typ, "type": typ, "name": name, "endpoints": endpoints}
}
