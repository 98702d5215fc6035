package aws

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// parameter is one SSM parameter; old versions are not kept.
type parameter struct {
	name, kind, value, dataType string
	version                     int
	modified                    time.Time
}

func ssmActions() map[string]action {
	return map[string]action{
		"PutParameter":  {write: true, json: (*Cloud).putParameter},
		"GetParameter":  {json: (*Cloud).getParameter},
		"GetParameters": {json: (*Cloud).getParameters},
	}
}

// secretlessJSON flattens a JSON request for the log.
func secretlessJSON(body []byte) map[string]string {
	var in map[string]any
	out := map[string]string{}
	if json.Unmarshal(body, &in) != nil {
		return out
	}
	for name, v := range in {
		if name == "Value" {
			v = "(withheld)"
		}
		out[name] = fmt.Sprint(v)
	}
	return out
}

// decodeJSON is strict: what is not emulated is refused.
func decodeJSON(body []byte, into any) *apiError {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return fail("ValidationException", "This emulated AWS does not emulate the parameter "+name+".")
		}
		return fail("SerializationException", "")
	}
	return nil
}

func (c *Cloud) putParameter(r *request) (any, *apiError) {
	var in struct {
		Name, Value, Type, Description, DataType, Tier, KeyId, AllowedPattern string
		Overwrite                                                             bool
		Tags                                                                  []struct{ Key, Value string }
	}
	if err := decodeJSON(r.body, &in); err != nil {
		return nil, err
	}
	old := r.world.parameters[in.Name]
	switch {
	case in.Name == "":
		return nil, fail("ValidationException", "1 validation error detected: Value null at 'name' failed to satisfy constraint: Member must not be null")
	case in.Value == "":
		return nil, fail("ValidationException", "1 validation error detected: Value '' at 'value' failed to satisfy constraint: Member must have length greater than or equal to 1.")
	case len(in.Value) > 4096 && in.Tier != "Advanced" && in.Tier != "Intelligent-Tiering":
		return nil, fail("ValidationException", "Standard tier parameters support a maximum parameter value of 4096 characters. To create a larger parameter value, upgrade the parameter to use the advanced-parameter tier. For more information, see https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html")
	case old != nil && !in.Overwrite:
		return nil, fail("ParameterAlreadyExists", "The parameter already exists. To overwrite this value, set the overwrite option in the request to true.")
	case old == nil && in.Type == "":
		return nil, fail("ValidationException", "A parameter type is required when you create a parameter.")
	}
	p := &parameter{name: in.Name, kind: in.Type, value: in.Value, dataType: in.DataType, version: 1, modified: time.Now()}
	if old != nil {
		p.version = old.version + 1
		if p.kind == "" {
			p.kind = old.kind
		}
	}
	if !slices.Contains([]string{"String", "StringList", "SecureString"}, p.kind) {
		return nil, fail("UnsupportedParameterType", "The parameter type is not supported.")
	}
	if p.dataType == "" {
		p.dataType = "text"
	}
	r.world.parameters[in.Name] = p
	tier := in.Tier
	if tier != "Advanced" {
		tier = "Standard"
	}
	return map[string]any{"Version": p.version, "Tier": tier}, nil
}

func (c *Cloud) parameterJSON(p *parameter, decrypt bool) map[string]any {
	value := p.value
	if p.kind == "SecureString" && !decrypt {
		value = base64.StdEncoding.EncodeToString([]byte(sum([]byte(value))))
	}
	return map[string]any{
		"Name": p.name, "Type": p.kind, "Value": value, "Version": p.version, "DataType": p.dataType,
		"LastModifiedDate": float64(p.modified.UnixMilli()) / 1000,
		"ARN":              fmt.Sprintf("arn:aws:ssm:%s:%s:parameter/%s", c.opts.Region, c.opts.AccountID, strings.TrimPrefix(p.name, "/")),
	}
}

func (c *Cloud) getParameter(r *request) (any, *apiError) {
	var in struct {
		Name           string
		WithDecryption bool
	}
	if err := decodeJSON(r.body, &in); err != nil {
		return nil, err
	}
	p := r.world.parameters[in.Name]
	if p == nil || r.empty {
		return nil, &apiError{"ParameterNotFound", "", http.StatusBadRequest}
	}
	return map[string]any{"Parameter": c.parameterJSON(p, in.WithDecryption)}, nil
}

func (c *Cloud) getParameters(r *request) (any, *apiError) {
	var in struct {
		Names          []string
		WithDecryption bool
	}
	if err := decodeJSON(r.body, &in); err != nil {
		return nil, err
	}
	found, lost := []any{}, []string{}
	for _, name := range in.Names {
		if p := r.world.parameters[name]; p != nil && !r.empty {
			found = append(found, c.parameterJSON(p, in.WithDecryption))
		} else {
			lost = append(lost, name)
		}
	}
	return map[string]any{"Parameters": found, "InvalidParameters": lost}, nil
}

// Parameter reads an SSM parameter in clear; ok is false if there is none.
func (c *Cloud) Parameter(name string) (value string, version int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.world.parameters[name]; p != nil {
		return p.value, p.version, true
	}
	return "", 0, false
}
