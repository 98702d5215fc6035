package aws

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

func iamActions() map[string]action {
	role := []string{"RoleName"}
	tags := []string{"Tags.member.N.Key", "Tags.member.N.Value"}
	return map[string]action{
		"CreateRole":               {write: true, query: (*Cloud).createRole, params: join(role, tags, []string{"AssumeRolePolicyDocument", "Description", "Path"})},
		"GetRole":                  {query: (*Cloud).getRole, params: role},
		"PutRolePolicy":            {write: true, bare: true, query: (*Cloud).putRolePolicy, params: join(role, []string{"PolicyName", "PolicyDocument"})},
		"GetRolePolicy":            {query: (*Cloud).getRolePolicy, params: join(role, []string{"PolicyName"})},
		"AttachRolePolicy":         {write: true, bare: true, query: (*Cloud).attachRolePolicy, params: join(role, []string{"PolicyArn"})},
		"CreateInstanceProfile":    {write: true, query: (*Cloud).createProfile, params: join(tags, []string{"InstanceProfileName"})},
		"GetInstanceProfile":       {query: (*Cloud).getProfile, params: []string{"InstanceProfileName"}},
		"AddRoleToInstanceProfile": {write: true, bare: true, query: (*Cloud).addRole, params: join(role, []string{"InstanceProfileName"})},
	}
}

func exists(what, name string) *apiError {
	return &apiError{"EntityAlreadyExists", what + " with name " + name + " already exists.", http.StatusConflict}
}

func noSuch(what, name string) *apiError {
	return &apiError{"NoSuchEntity", what + " " + name + " cannot be found.", http.StatusNotFound}
}

// document checks a policy as IAM does before it looks at its content.
func document(text string) *apiError {
	if !json.Valid([]byte(text)) {
		return fail("MalformedPolicyDocument", "Syntax errors in policy.")
	}
	return nil
}

func (c *Cloud) role(r *request) (*Role, *apiError) {
	name := r.p.str("RoleName")
	if found := c.account.roles[name]; found != nil {
		return found, nil
	}
	return nil, noSuch("The role with name", name)
}

func (c *Cloud) createRole(r *request) ([]el, *apiError) {
	name, trust := r.p.str("RoleName"), r.p.str("AssumeRolePolicyDocument")
	if c.account.roles[name] != nil {
		return nil, exists("Role", name)
	}
	if err := document(trust); err != nil {
		return nil, err
	}
	made := &Role{Name: name, Trust: trust, Inline: map[string]string{}, Tags: map[string]string{}}
	for _, t := range r.p.list("Tags") {
		made.Tags[t.str("Key")] = t.str("Value")
	}
	c.account.roles[name] = made
	return []el{x("Role", c.roleElements(made))}, nil
}

func (c *Cloud) roleElements(r *Role) []el {
	return []el{
		x("Path", "/"), x("RoleName", r.Name), x("RoleId", fmt.Sprintf("AROA%016X", c.fingerprint("role "+r.Name))),
		x("Arn", "arn:aws:iam::"+c.opts.AccountID+":role/"+r.Name), x("CreateDate", time.Unix(1767225600, 0)),
		x("AssumeRolePolicyDocument", url.QueryEscape(r.Trust)),
	}
}

func (c *Cloud) getRole(r *request) ([]el, *apiError) {
	found, err := c.role(r)
	if err != nil {
		return nil, err
	}
	return []el{x("Role", c.roleElements(found))}, nil
}

func (c *Cloud) putRolePolicy(r *request) ([]el, *apiError) {
	found, err := c.role(r)
	if err != nil {
		return nil, err
	}
	text := r.p.str("PolicyDocument")
	if err := document(text); err != nil {
		return nil, err
	}
	found.Inline[r.p.str("PolicyName")] = text
	return nil, nil
}

func (c *Cloud) getRolePolicy(r *request) ([]el, *apiError) {
	found, err := c.role(r)
	if err != nil {
		return nil, err
	}
	name := r.p.str("PolicyName")
	text, ok := found.Inline[name]
	if !ok {
		return nil, noSuch("The role policy with name", name)
	}
	return []el{x("RoleName", found.Name), x("PolicyName", name), x("PolicyDocument", url.QueryEscape(text))}, nil
}

func (c *Cloud) attachRolePolicy(r *request) ([]el, *apiError) {
	found, err := c.role(r)
	if err != nil {
		return nil, err
	}
	if arn := r.p.str("PolicyArn"); !slices.Contains(found.Attached, arn) {
		found.Attached = append(found.Attached, arn)
	}
	return nil, nil
}

func (c *Cloud) profile(r *request) (*InstanceProfile, *apiError) {
	name := r.p.str("InstanceProfileName")
	if found := c.account.profiles[name]; found != nil {
		return found, nil
	}
	return nil, noSuch("Instance Profile", name)
}

func (c *Cloud) createProfile(r *request) ([]el, *apiError) {
	name := r.p.str("InstanceProfileName")
	if c.account.profiles[name] != nil {
		return nil, exists("Instance Profile", name)
	}
	c.account.profiles[name] = &InstanceProfile{Name: name}
	return c.getProfile(r)
}

func (c *Cloud) getProfile(r *request) ([]el, *apiError) {
	found, err := c.profile(r)
	if err != nil {
		return nil, err
	}
	roles := el{name: "Roles"}
	if found.Role != "" {
		roles.add(x("member", c.roleElements(c.account.roles[found.Role])))
	}
	return []el{x("InstanceProfile", x("Path", "/"), x("InstanceProfileName", found.Name),
		x("InstanceProfileId", fmt.Sprintf("AIPA%016X", c.fingerprint(found.Name))),
		x("Arn", "arn:aws:iam::"+c.opts.AccountID+":instance-profile/"+found.Name), x("CreateDate", time.Unix(1767225600, 0)), roles)}, nil
}

func (c *Cloud) addRole(r *request) ([]el, *apiError) {
	found, err := c.profile(r)
	if err != nil {
		return nil, err
	}
	role, err := c.role(r)
	if err != nil {
		return nil, err
	}
	if found.Role != "" {
		return nil, &apiError{"LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1", http.StatusConflict}
	}
	found.Role = role.Name
	return nil, nil
}
