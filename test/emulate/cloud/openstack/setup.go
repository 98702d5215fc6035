package openstack

import (
	"cmp"
	"net/http"
	"slices"
)

// SecurityRule is one rule of a security group, as Neutron tells it.
type SecurityRule struct {
	ID        string  `json:"id"`
	Group     string  `json:"security_group_id"`
	Direction string  `json:"direction"`
	EtherType string  `json:"ethertype"`
	Protocol  *string `json:"protocol"`
	Min       *int    `json:"port_range_min"`
	Max       *int    `json:"port_range_max"`
	CIDR      *string `json:"remote_ip_prefix"`
	Remote    *string `json:"remote_group_id"`
	Text      string  `json:"description"`
}

// Rules returns the rules of a security group by its name, those that let everything out left out.
func (r *Region) Rules(group string) []SecurityRule {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	id, _ := r.securityGroup(group)
	var out []SecurityRule
	for _, rule := range r.rules {
		if rule.Group == id && rule.Direction == "ingress" {
			out = append(out, *rule)
		}
	}
	return out
}

// serveGroups answers security groups; a new one lets everything out, as Neutron's do.
func (r *Region) serveGroups(q *call, parts []string) {
	switch {
	case q.Method == http.MethodGet:
		var ids []string
		for id := range r.groups {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		answerList(q, "security_group", parts, ids, r.describeGroup)
	case q.Method == http.MethodPost && len(parts) == 1:
		var body struct {
			Group struct{ Name, Description string } `json:"security_group"`
		}
		if !q.decode(&body) {
			return
		}
		id := newID()
		r.groups[id] = body.Group.Name
		r.texts[id] = body.Group.Description
		for _, version := range []string{"IPv4", "IPv6"} {
			r.rules = append(r.rules, &SecurityRule{ID: newID(), Group: id, Direction: "egress", EtherType: version})
		}
		q.answer(http.StatusCreated, map[string]any{"security_group": r.describeGroup(id)})
	case q.Method == http.MethodDelete && len(parts) == 2 && r.groups[parts[1]] != "":
		if slices.ContainsFunc(r.ports, func(p *Port) bool { return slices.Contains(p.SecurityGroups, parts[1]) }) {
			q.fail(http.StatusConflict, "Security Group "+parts[1]+" in use.")
			return
		}
		delete(r.groups, parts[1])
		r.rules = slices.DeleteFunc(r.rules, func(rule *SecurityRule) bool { return rule.Group == parts[1] })
		q.w.WriteHeader(http.StatusNoContent)
	default:
		q.fail(http.StatusNotFound, "The resource could not be found.")
	}
}

func (r *Region) describeGroup(id string) map[string]any {
	rules := []*SecurityRule{}
	for _, rule := range r.rules {
		if rule.Group == id {
			rules = append(rules, rule)
		}
	}
	return map[string]any{"id": id, "name": r.groups[id], "description": r.texts[id], "stateful": true, "security_group_rules": rules, "tags": []string{}}
}

// serveRules answers rules of security groups. Neutron refuses one that is there already.
func (r *Region) serveRules(q *call, parts []string) {
	at := -1
	if len(parts) == 2 {
		if at = slices.IndexFunc(r.rules, func(rule *SecurityRule) bool { return rule.ID == parts[1] }); at < 0 {
			q.fail(http.StatusNotFound, "Security group rule "+parts[1]+" does not exist")
			return
		}
	}
	switch {
	case q.Method == http.MethodGet && at >= 0:
		q.answer(http.StatusOK, map[string]any{"security_group_rule": r.rules[at]})
	case q.Method == http.MethodGet:
		q.answer(http.StatusOK, map[string]any{"security_group_rules": append([]*SecurityRule{}, r.rules...)})
	case q.Method == http.MethodDelete && at >= 0:
		r.rules = slices.Delete(r.rules, at, at+1)
		q.w.WriteHeader(http.StatusNoContent)
	case q.Method == http.MethodPost && at < 0:
		var body struct {
			Rule SecurityRule `json:"security_group_rule"`
		}
		if !q.decode(&body) {
			return
		}
		rule := body.Rule
		switch {
		case r.groups[rule.Group] == "":
			q.fail(http.StatusNotFound, "Security group "+rule.Group+" does not exist")
		case rule.Remote != nil && r.groups[*rule.Remote] == "":
			q.fail(http.StatusNotFound, "Security group "+*rule.Remote+" does not exist")
		case slices.ContainsFunc(r.rules, rule.same):
			q.fail(http.StatusConflict, "Security group rule already exists. Rule id is "+rule.ID+".")
		default:
			rule.ID = newID()
			r.rules = append(r.rules, &rule)
			q.answer(http.StatusCreated, map[string]any{"security_group_rule": &rule})
		}
	default:
		q.fail(http.StatusNotFound, "The resource could not be found.")
	}
}

func (s *SecurityRule) same(o *SecurityRule) bool {
	return s.Group == o.Group && s.Direction == o.Direction && s.EtherType == o.EtherType && equal(s.Protocol, o.Protocol) &&
		equal(s.Min, o.Min) && equal(s.Max, o.Max) && equal(s.CIDR, o.CIDR) && equal(s.Remote, o.Remote)
}

func equal[T cmp.Ordered](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// serveKeys answers key pairs, which go by their names.
func (r *Region) serveKeys(q *call, parts []string) {
	pair := func(name string) map[string]any {
		return map[string]any{"keypair": map[string]any{"name": name, "public_key": r.keys[name], "fingerprint": "SHA256:x", "type": "ssh"}}
	}
	switch {
	case q.Method == http.MethodGet && len(parts) == 1:
		list := []any{}
		for name := range r.keys {
			list = append(list, pair(name))
		}
		q.answer(http.StatusOK, map[string]any{"keypairs": list})
	case q.Method == http.MethodPost && len(parts) == 1:
		var body struct {
			Pair struct {
				Name string `json:"name"`
				Key  string `json:"public_key"`
			} `json:"keypair"`
		}
		if !q.decode(&body) {
			return
		}
		if r.keys[body.Pair.Name] != "" {
			q.fail(http.StatusConflict, "Key pair '"+body.Pair.Name+"' already exists.")
			return
		}
		r.keys[body.Pair.Name] = body.Pair.Key
		q.answer(http.StatusCreated, pair(body.Pair.Name))
	case len(parts) == 2 && r.keys[parts[1]] != "" && q.Method == http.MethodGet:
		q.answer(http.StatusOK, pair(parts[1]))
	case len(parts) == 2 && r.keys[parts[1]] != "" && q.Method == http.MethodDelete:
		delete(r.keys, parts[1])
		q.w.WriteHeader(http.StatusAccepted)
	default:
		q.fail(http.StatusNotFound, "Keypair could not be found.")
	}
}

// applicationCredential makes one for the caller, a user with a password. Its access rules are kept as they were given; this
// emulated cloud holds nobody to them (make e2e-openstack does).
func (c *Cloud) applicationCredential(q *call, parts []string) {
	t := c.check(q.Header.Get("X-Auth-Token"))
	if t == nil {
		q.fail(http.StatusUnauthorized, "The request you have made requires authentication.")
		return
	}
	if t.login.ApplicationID != "" {
		q.fail(http.StatusForbidden, "You are not authorized to perform the requested action: identity:create_application_credential.")
		return
	}
	at := slices.IndexFunc(c.credentials, func(one map[string]any) bool { return len(parts) == 5 && one["id"] == parts[4] })
	switch {
	case q.Method == http.MethodPost && len(parts) == 4:
		var body struct {
			Credential map[string]any `json:"application_credential"`
		}
		if !q.decode(&body) {
			return
		}
		one, app := body.Credential, *t.login
		roles, _ := one["roles"].([]any)
		for _, role := range roles { // a role's name is its ID here
			if r, ok := role.(map[string]any); ok && r["name"] == nil {
				r["name"] = r["id"]
			}
		}
		one["id"], one["secret"], one["project_id"] = newID(), newID(), t.login.ProjectID
		app.Password, app.ApplicationID, app.Secret = "", one["id"].(string), one["secret"].(string)
		app.ApplicationName, _ = one["name"].(string)
		c.identity.logins = append(c.identity.logins, &app)
		c.credentials = append(c.credentials, one)
		q.answer(http.StatusCreated, map[string]any{"application_credential": one})
	case q.Method == http.MethodGet && at >= 0:
		q.answer(http.StatusOK, map[string]any{"application_credential": c.credentials[at]})
	case q.Method == http.MethodDelete && at >= 0:
		c.identity.logins = slices.DeleteFunc(c.identity.logins, func(l *Login) bool { return l.ApplicationID == parts[4] })
		c.credentials = slices.Delete(c.credentials, at, at+1)
		q.w.WriteHeader(http.StatusNoContent)
	default:
		q.fail(http.StatusNotFound, "The resource could not be found.")
	}
}
